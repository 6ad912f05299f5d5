/** Programs that are not Node's: present only where they are installed. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeCertificate } from 'heddle/testing'
import { freePort, installed, startCommand, startProgram, type Running } from '../processes.ts'

const folder = mkdtempSync(join(tmpdir(), 'heddle-bench-'))

function written(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

async function nginx(server: (port: number) => string): Promise<Running | undefined> {
  if (!installed('nginx')) return undefined
  const port = await freePort()
  for (const name of ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']) mkdirSync(join(folder, name), { recursive: true })
  const config = `daemon off; master_process off; worker_processes 1; pid ${folder}/nginx-${port}.pid; error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off; tcp_nodelay on; keepalive_requests 100000000; keepalive_timeout 75s; default_type text/plain;
  client_body_temp_path ${folder}/body; proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
${server(port)}
}`
  return await startProgram(0, 'nginx', ['-c', written(`nginx-${port}.conf`, config), '-p', folder], port)
}

async function haproxy(port: number, body: string): Promise<Running | undefined> {
  if (!installed('haproxy')) return undefined
  const config = `global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  option http-keep-alive
${body}
`
  return await startProgram(0, 'haproxy', ['-db', '-q', '-f', written(`haproxy-${port}.cfg`, config)], port)
}

/** nginx with the small answer of the server races. */
export async function nginxServer(): Promise<Running | undefined> {
  return await nginx((port) => `  server { listen 127.0.0.1:${port}; location / { return 200 "hello, world"; } }`)
}

/** haproxy with the small answer of the server races. */
export async function haproxyServer(): Promise<Running | undefined> {
  const port = await freePort()
  return await haproxy(
    port,
    `frontend f\n  bind 127.0.0.1:${port}\n  http-request return status 200 content-type text/plain string "hello, world"`,
  )
}

/** nginx as a proxy with keep-alive to the origin. */
export async function nginxProxy(origin: number): Promise<Running | undefined> {
  return await nginx(
    (port) => `  upstream origin { server 127.0.0.1:${origin}; keepalive 256; keepalive_requests 100000000; }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; } }`,
  )
}

/** haproxy as a proxy. */
export async function haproxyProxy(origin: number): Promise<Running | undefined> {
  const port = await freePort()
  return await haproxy(
    port,
    `frontend f\n  bind 127.0.0.1:${port}\n  option forwardfor\n  default_backend b\nbackend b\n  http-reuse always\n  server s 127.0.0.1:${origin}`,
  )
}

const { cert, key } = makeCertificate({ names: ['localhost'] })
const certFile = written('cert.pem', cert)
const keyFile = written('key.pem', key)

/** What a server of the HTTP/2 races answers, and whether over TLS. */
export interface Http2Answer {
  readonly size: number
  readonly tls: boolean
}

/** nginx over HTTP/2: its small answer from the configuration, a large one from a file. */
export async function nginxHttp2Server({ size, tls }: Http2Answer): Promise<Running | undefined> {
  if (size !== 12) written(`content-${size}`, 'x'.repeat(size))
  const answer = size === 12 ? 'return 200 "hello, world";' : `root ${folder}; sendfile on; rewrite ^ /content-${size} break;`
  const secure = tls ? ` ssl_certificate ${certFile}; ssl_certificate_key ${keyFile};` : ''
  return await nginx(
    (port) =>
      `  http2_max_concurrent_streams 1000; server { listen 127.0.0.1:${port}${tls ? ' ssl' : ''} http2;${secure} location / { ${answer} } }`,
  )
}

/** haproxy over plain-text HTTP/2, small answers only. */
export async function haproxyHttp2Server({ size, tls }: Http2Answer): Promise<Running | undefined> {
  if (size !== 12 || tls) return undefined
  const port = await freePort()
  return await haproxy(
    port,
    `frontend f\n  bind 127.0.0.1:${port} proto h2\n  http-request return status 200 content-type text/plain string "hello, world"`,
  )
}

/** Go's net/http, one processor. Built at its first use. */
export async function goServer({ size, tls }: Http2Answer): Promise<Running | undefined> {
  if (!installed('go')) return undefined
  const program = join(folder, 'go-server')
  const built = spawnSync('go', ['build', '-o', program, '.'], {
    cwd: fileURLToPath(new URL('go-server/', import.meta.url)),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (built.status !== 0) return undefined
  return await startCommand(0, program, [String(size), ...(tls ? [certFile, keyFile] : [])], { GOMAXPROCS: '1' })
}

/** quic-go's HTTP/3 server. */
export async function quicGoServer(size: number): Promise<Running | undefined> {
  if (!installed('go')) return undefined
  const program = join(folder, 'go-h3-server')
  const built = spawnSync('go', ['build', '-o', program, '.'], {
    cwd: fileURLToPath(new URL('go-h3-server/', import.meta.url)),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (built.status !== 0) return undefined
  return await startCommand(0, program, [String(size), certFile, keyFile], { GOMAXPROCS: '1' })
}

/** nginx as a gRPC proxy, HTTP/2 on both sides, keep-alive to the origin. */
export async function nginxHttp2Proxy(origin: number): Promise<Running | undefined> {
  return await nginx(
    (port) => `  upstream origin { server 127.0.0.1:${origin}; keepalive 16; keepalive_requests 100000000; }
  http2_max_concurrent_streams 1000; client_max_body_size 0;
  server { listen 127.0.0.1:${port} http2; location / { grpc_pass grpc://origin; } }`,
  )
}

/** haproxy with HTTP/2 on both sides. */
export async function haproxyHttp2Proxy(origin: number): Promise<Running | undefined> {
  const port = await freePort()
  return await haproxy(
    port,
    `frontend f\n  bind 127.0.0.1:${port} proto h2\n  default_backend b\nbackend b\n  http-reuse always\n  server s 127.0.0.1:${origin} proto h2`,
  )
}
