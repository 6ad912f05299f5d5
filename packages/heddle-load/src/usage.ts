/** What `heddle-load --help` prints. */
export const usage = `Usage: heddle-load URL [options]
       heddle-load -f SCENARIO [URL] [options]

URL is http:, https:, ws: or wss:. Durations are 500ms, 10s or 2m; sizes 512B, 64KiB or 10MB.

How much
  -c, --connections N      connections; default 10
  -m, --streams N          requests at once on each, over HTTP/2 and HTTP/3 (WebSockets on each); default 1
      --in-flight N        WebSocket: messages at once on each; default 1
  -r, --rate N             requests due per second, whatever becomes of them (open loop); 500, 10k, 90/m.
                           Without it each connection sends the next one when it has the answer (closed loop)
      --arrivals KIND      of a rate: poisson (default) or uniform
      --seed N             of all that chance decides; default 1
      --max-backlog N      of a rate: due requests that may wait; more are not begun; default 10 s worth
      --pacing KIND        of a rate: spin (default), to the microsecond, or timer, up to 2 ms late
  -t, --threads N          share it all among so many; default 1

How long
  -d, --duration TIME      to measure; default 10s
  -n, --requests N         to measure, in place of a duration or within it
  -w, --warmup TIME        the same load before that, not measured; default 0s
      --grace TIME         what is due at the end may take so long; default 5s
      --timeout TIME       of one request; default 30s
      --connect-timeout TIME  default 10s

What
  -p, --protocol P         auto (default), h1, h2 or h3. auto: HTTP/1.1 on http:, the server's choice
                           of HTTP/2 and HTTP/1.1 on https:. h3: https: and wss: only, needs Node 26.9 or newer
      --grpc               unary calls; URL has the method: http://host/package.Service/Method
  -X, --method M           default GET, or POST with a body
  -H, --header 'n: v'      any number of times
      --host NAME          what is asked for, in place of the URL's host
  -b, --body TEXT          content or message; @FILE is a file's
      --body-hex DIGITS
      --body-size SIZE
      --accept LIST        statuses that are a success; default 2xx,3xx
  -f, --scenario FILE      several requests with weights, in YAML or JSON
      --echo KIND          WebSocket: what has to come back: same (default) or any
      --deflate            WebSocket: offer permessage-deflate

Where
      --ca FILE, --cert FILE, --key FILE   PEM
      --sni NAME           server name of TLS; default the URL's host
  -k, --insecure           any certificate will do
      --unix PATH          connect to this socket

What comes of it
      --fail-if RULE       any number of times: 'p99>20ms' 'errors>0.1%' 'dropped>0' 'rps<5000' 'status.5xx>0'
                           (p50 … p99.99, max, mean, service.p99, errors, dropped, status.404, rps; > >= < <=)
      --json FILE          the result; - is standard output, and the report goes to standard error
  -q, --quiet              no report
  -h, --help, -v, --version

Exit status: 0; 1 a rule of --fail-if holds, or nothing was answered; 2 bad options; 130 Ctrl-C, which
prints what there is. A second one ends at once.
`
