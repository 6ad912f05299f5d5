"""The application of the stories (src/application.ts) for aioquic, which has nothing above the frames of HTTP/3."""

import asyncio
import hashlib

from aioquic.h3.connection import ErrorCode

CONTENT = (b"abcdefghijk" * (2_000_000 // 11 + 1))[:2_000_000]


class Request:
    """One request: content is handed to `on_data`, and the end to `on_end`."""

    def __init__(self, protocol, stream, headers):
        self.protocol = protocol
        self.stream = stream
        self.fields = {}
        for name, value in headers:
            separator = b"; " if name == b"cookie" else b", "
            self.fields[name] = self.fields[name] + separator + value if name in self.fields else value
        self.trailers = {}
        self.on_data = lambda data: None
        self.on_end = lambda: None
        self.on_break = lambda: None
        self.is_over = False

    def receive_data(self, data):
        self.on_data(data)

    def receive_trailers(self, headers):
        self.trailers = dict(headers)

    def receive_end(self):
        self.on_end()

    def break_off(self):
        self.is_over = True
        self.on_break()

    def head(self, status, *fields, end=False):
        headers = [(b":status", str(status).encode()), *((name.encode(), value.encode()) for name, value in fields)]
        self.protocol.http.send_headers(self.stream, headers, end_stream=end)
        self.is_over |= end

    def send(self, data=b"", end=True):
        if self.is_over:
            return
        self.protocol.http.send_data(self.stream, data, end_stream=end)
        self.is_over |= end
        self.protocol._transmit_soon()

    def say(self, text, *fields):
        self.head(200, ("content-length", str(len(text))), *fields)
        self.send(text.encode())

    def reset(self):
        self.is_over = True
        self.protocol._quic.reset_stream(self.stream, ErrorCode.H3_INTERNAL_ERROR)
        self.protocol.transmit()


class Application:
    def __init__(self):
        self.cancelled = 0

    def begin(self, protocol, stream, headers):
        request = Request(protocol, stream, headers)
        path = request.fields.get(b":path", b"").decode().split("?")[0]
        method = request.fields[b":method"].decode()
        _, first, *rest = path.split("/")
        match first:
            case "big":
                request.head(200, ("content-length", str(len(CONTENT))), end=method == "HEAD")
                request.send(CONTENT)
            case "stream":
                request.head(200)
                request.send(CONTENT)
            case "sum":
                total = hashlib.sha256()
                request.on_data = total.update
                request.on_end = lambda: request.say(total.hexdigest())
            case "echo":
                request.head(200)
                request.on_data = lambda data: request.send(data, end=False)
                request.on_end = request.send
            case "fields":
                asked = request.fields.get(b"x-asked", b"").decode().split(", ")
                request.say(request.fields.get(b"cookie", b"").decode(), *(("x-answered", value) for value in asked))
            case "trailers":
                request.on_end = lambda: self.summed(request)
            case "hints":
                request.head(103, ("link", "</a.css>; rel=preload"))
                request.say("hinted")
            case "break":
                request.head(200)
                request.send(CONTENT[:100_000], end=False)
                asyncio.get_running_loop().call_later(0.1, request.reset)
            case "wait":
                request.on_break = self.count
            case "cancelled":
                request.say(str(self.cancelled))
            case "quic":
                self.quic(request, method, *rest)
            case _:
                request.say(f"{method} h3")
        return request

    def count(self):
        self.cancelled += 1

    def summed(self, request):
        request.head(200)
        request.send(b"summed", end=False)
        got = request.trailers.get(b"x-sent", b"").decode()
        request.protocol.http.send_headers(request.stream, [(b"x-sum", b"42"), (b"x-got", got.encode())], end_stream=True)
        request.protocol._transmit_soon()

    def quic(self, request, method, what, argument=""):
        quic = request.protocol._quic
        match what:
            case "sized":
                size = int(argument)
                request.head(200, ("content-length", argument))
                request.send((CONTENT * (size // len(CONTENT) + 1))[:size])
            case "not-modified":
                request.head(304, ("etag", '"one"'), end=True)
                request.protocol._transmit_soon()
            case "resumed":
                request.say(str(quic.tls.session_resumed).lower())
            case "address":
                request.say(":".join(map(str, quic._network_paths[0].addr[:2])))
            case "suite":
                request.say(f"TLS_{quic.tls.key_schedule.cipher_suite.name}")
            case "later":
                asyncio.get_running_loop().call_later(0.3, request.say, "later")
            case "tunnel":
                request.head(200)
                request.on_data = lambda data: request.send(data, end=False)
                request.on_end = request.send
            case _:
                request.head(404, end=True)
                request.protocol._transmit_soon()
