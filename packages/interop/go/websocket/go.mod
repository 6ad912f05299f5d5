// The Go peer of WebSocket: github.com/coder/websocket, server and client.
module heddle.test/websocket

go 1.24.0

require github.com/coder/websocket v1.8.15
