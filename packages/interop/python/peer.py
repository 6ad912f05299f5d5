"""aioquic as a client or a server of HTTP/3, driven from outside like the Go peer (go/peer): a server prints "quic PORT"
and stops when its standard input ends; a client reads orders, one JSON object a line, and prints what came of each."""

import argparse
import asyncio
import base64
import json
import socket
import sys

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, StopSendingReceived, StreamReset
from aioquic.tls import CipherSuite, Epoch

from application import Application

SUITES = {suite.name: suite for suite in CipherSuite}


class Tickets(dict):
    """The session tickets of a server."""

    def add(self, ticket):
        self[ticket.ticket] = ticket

    def take(self, label):
        return self.pop(label, None)


def configuration(words, is_client):
    made = QuicConfiguration(
        is_client=is_client,
        alpn_protocols=H3_ALPN,
        idle_timeout=words.idle,
        connection_id_length=words.id_length,
        max_stream_data=64 * 1024 if words.small_windows else 1024 * 1024,
        max_data=128 * 1024 if words.small_windows else 1024 * 1024,
        congestion_control_algorithm="cubic",
    )
    if words.suite:
        made.cipher_suites = [SUITES[words.suite]]
    if words.wrong_version:
        made.supported_versions = [0x1A2A3A4A, *made.supported_versions]
        made.original_version = 0x1A2A3A4A
    return made


class Exchange:
    """A request on its way: what has come of its answer."""

    def __init__(self, asked, outcome):
        self.asked = asked
        self.outcome = outcome
        self.headers = None
        self.trailers = []
        self.informational = []
        self.content = bytearray()


class Client(QuicConnectionProtocol):
    """One connection."""

    def __init__(self, quic, stream_handler=None):
        super().__init__(quic, stream_handler)
        self.http = H3Connection(quic)
        self.exchanges = {}
        self.ended = asyncio.get_running_loop().create_future()
        self.room = []

    def start(self, asked, authority):
        """Sends a request; returns a future of its answer."""
        outcome = asyncio.get_running_loop().create_future()
        stream = self._quic.get_next_available_stream_id()
        self.exchanges[stream] = Exchange(asked, outcome)
        headers = [
            (b":method", asked["Method"].encode()),
            (b":scheme", b"https"),
            (b":authority", authority.encode()),
            (b":path", asked["Path"].encode()),
            *((name.lower().encode(), value.encode()) for name, value in asked.get("Headers") or []),
        ]
        if asked.get("Protocol"):
            headers.insert(1, (b":protocol", asked["Protocol"].encode()))
        content = base64.b64decode(asked.get("Content") or "")
        trailers = [(name.encode(), value.encode()) for name, value in asked.get("Trailers") or []]
        if asked.get("Has") and not asked.get("Streamed") and not trailers:
            headers.append((b"content-length", str(len(content)).encode()))
        self.http.send_headers(stream, headers, end_stream=not content and not trailers)
        if content:
            self.http.send_data(stream, content, end_stream=not trailers)
        if trailers:
            self.http.send_headers(stream, trailers, end_stream=True)
        self.transmit()
        if asked.get("AbortIn"):
            asyncio.get_running_loop().call_later(asked["AbortIn"] / 1000, self.give_up, stream, "it was given up")
        return outcome

    def give_up(self, stream, why):
        """Resets a request both ways."""
        exchange = self.exchanges.pop(stream, None)
        if exchange is None:
            return
        self._quic.stop_stream(stream, ErrorCode.H3_REQUEST_CANCELLED)
        sending = self._quic._streams.get(stream)
        if sending is not None and not sending.sender.is_finished:
            self._quic.reset_stream(stream, ErrorCode.H3_REQUEST_CANCELLED)
        self.transmit()
        if why is None:
            self.finish(exchange)
        else:
            exchange.outcome.set_exception(Exception(why))

    def finish(self, exchange):
        fields = [(name.decode(), value.decode()) for name, value in exchange.headers]
        exchange.outcome.set_result(
            {
                "Version": "h3",
                "Status": int(dict(fields)[":status"]),
                "Headers": [field for field in fields if field[0] != ":status"],
                "Content": base64.b64encode(exchange.content).decode(),
                "Trailers": [(name.decode(), value.decode()) for name, value in exchange.trailers],
                "Informational": exchange.informational,
                "Resumed": self._quic.tls.session_resumed,
            }
        )

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            if not self.ended.done():
                self.ended.set_result(f"{event.error_code:#x} {event.reason_phrase}".strip())
            for exchange in self.exchanges.values():
                exchange.outcome.set_exception(Exception(f"the connection ended: {event}"))
            self.exchanges.clear()
        elif isinstance(event, StreamReset):
            exchange = self.exchanges.pop(event.stream_id, None)
            if exchange is not None:
                exchange.outcome.set_exception(Exception(f"reset with {event.error_code:#x}"))
        for http_event in self.http.handle_event(event):
            exchange = self.exchanges.get(getattr(http_event, "stream_id", None))
            if exchange is not None:
                self.receive(exchange, http_event)

    def receive(self, exchange, event):
        if isinstance(event, HeadersReceived):
            status = dict(event.headers).get(b":status", b"")
            if exchange.headers is not None:
                exchange.trailers = event.headers
            elif status.startswith(b"1"):
                link = dict(event.headers).get(b"link", b"")
                exchange.informational.append(f"{status.decode()} {link.decode()}".strip())
            else:
                exchange.headers = event.headers
        elif isinstance(event, DataReceived):
            exchange.content += event.data
            after = exchange.asked.get("AbortAfter", -1)
            if after >= 0 and len(exchange.content) >= after:
                self.give_up(event.stream_id, None)
                return
        if event.stream_ended:
            del self.exchanges[event.stream_id]
            self.finish(exchange)


class Asking:
    """Carries orders out on one connection at a time."""

    def __init__(self, words):
        self.words = words
        self.ticket = None
        self.token = b""
        self.connecting = None
        self.host, _, port = words.address.rpartition(":")
        self.port = int(port)

    def client(self):
        if self.connecting is None:
            self.connecting = asyncio.ensure_future(self.connect())
        return self.connecting

    async def connect(self):
        made = configuration(self.words, True)
        made.load_verify_locations(cafile=self.words.ca)
        made.server_name = "localhost"
        made.session_ticket = self.ticket
        made.token = self.token
        quic = QuicConnection(configuration=made, session_ticket_handler=self.keep_ticket, token_handler=self.keep_token)
        protocol = Client(quic)
        await self.bind(protocol)
        protocol.connect((self.host, self.port))
        await protocol.wait_connected()
        return protocol

    async def bind(self, protocol):
        """Gives a connection a socket of its own; what comes at the one it had goes nowhere, as behind a NAT that forgot."""
        loop = asyncio.get_running_loop()
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        before = protocol._transport
        await loop.create_datagram_endpoint(lambda: protocol, sock=udp)
        if before is not None:
            before.close()
        return f"127.0.0.1:{udp.getsockname()[1]}"

    def keep_ticket(self, ticket):
        self.ticket = ticket

    def keep_token(self, token):
        self.token = token

    async def carry_out(self, order):
        outcome = {"ID": order["ID"], "Error": ""}
        try:
            async with asyncio.timeout(30):
                if order.get("Do"):
                    outcome["Content"] = base64.b64encode((await self.do(order["Do"])).encode()).decode()
                else:
                    client = await self.client()
                    outcome |= await client.start(order, self.words.address)
        except Exception as error:
            outcome["Error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(outcome) + "\n", end="", flush=True)

    async def do(self, what):
        if what == "leave":
            if self.connecting is not None and self.connecting.done() and self.connecting.exception() is None:
                self.connecting.result().close(ErrorCode.H3_NO_ERROR)
            self.connecting = None
            return ""
        client = await self.client()
        quic = client._quic
        match what:
            case "update keys":
                client.request_key_update()
                await client.ping()
                return str(quic._cryptos[Epoch.ONE_RTT].key_phase)
            case "rebind":
                return await self.bind(client)
            case "migrate":
                at = await self.bind(client)
                client.change_connection_id()
                return at
            case "change id":
                client.change_connection_id()
                await client.ping()
                return ""
            case "ended":
                return await asyncio.wait_for(asyncio.shield(client.ended), 20)
            case "token":
                return str(len(self.token))
            case "retry":
                return str(quic._retry_source_connection_id is not None)
            case "suite":
                return quic.tls.key_schedule.cipher_suite.name
            case "table":
                # What the QPACK tables of both ways were used for: octets of instructions.
                http = client.http
                return json.dumps([http._encoder_bytes_sent, http._encoder_bytes_received, http._decoder_bytes_sent, http._decoder_bytes_received])
        raise Exception(f"no way to {what}")


async def ask(words):
    asking = Asking(words)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**28)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready\n", end="", flush=True)
    running = set()
    while line := await reader.readline():
        task = asyncio.ensure_future(asking.carry_out(json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)


class Serving(QuicConnectionProtocol):
    """A connection of the server."""

    def __init__(self, quic, stream_handler=None):
        super().__init__(quic, stream_handler)
        self.http = H3Connection(quic)
        self.requests = {}

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            for request in self.requests.values():
                request.break_off()
            self.requests.clear()
        elif isinstance(event, (StreamReset, StopSendingReceived)):
            request = self.requests.pop(event.stream_id, None)
            if request is not None:
                request.break_off()
        for http_event in self.http.handle_event(event):
            if isinstance(http_event, HeadersReceived):
                request = self.requests.get(http_event.stream_id)
                if request is None:
                    request = self.requests[http_event.stream_id] = application.begin(self, http_event.stream_id, http_event.headers)
                else:
                    request.receive_trailers(http_event.headers)
            elif isinstance(http_event, DataReceived):
                request = self.requests.get(http_event.stream_id)
                if request is not None:
                    request.receive_data(http_event.data)
            if getattr(http_event, "stream_ended", False) and request is not None:
                request.receive_end()


async def answer(words):
    made = configuration(words, False)
    made.load_cert_chain(words.cert, words.key)
    tickets = Tickets()
    server = await serve(
        "127.0.0.1",
        0,
        configuration=made,
        create_protocol=Serving,
        session_ticket_fetcher=tickets.take,
        session_ticket_handler=tickets.add,
        retry=words.retry,
    )
    print(f"quic {server._transport.get_extra_info('sockname')[1]}\n", end="", flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        # Orders of a server hold for all its connections.
        for protocol in set(server._protocols.values()):
            match line.strip():
                case b"update keys":
                    protocol.request_key_update()
                case b"change id":
                    protocol.change_connection_id()
    server.close()
    await asyncio.sleep(0.1)


application = Application()

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("side", choices=["quic-server", "http-client"])
    for name in ("cert", "key", "ca", "address", "suite", "way"):
        parser.add_argument(f"-{name}")
    parser.add_argument("-idle", type=float, default=30)
    parser.add_argument("-id-length", type=int, default=8)
    for name in ("retry", "wrong-version", "small-windows"):
        parser.add_argument(f"-{name}", action="store_true")
    words = parser.parse_args()
    asyncio.run(answer(words) if words.side == "quic-server" else ask(words))
