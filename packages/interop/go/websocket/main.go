// Command websocket is one side of a conversation by github.com/coder/websocket: a server, which prints
// "ready PORT" and a line of JSON for each connection that has ended, or a client, which prints one such line.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

var (
	url   = flag.String("url", "", "where a client connects to")
	mode  = flag.String("deflate", "off", "off, takeover or fresh")
	count = flag.Int("count", 0, "how many messages a client sends")
)

// What src/websocket-standard.ts has, too.
var (
	offered = []string{"weave.v9", "weave.v2", "weave.v1"}
	spoken  = []string{"weave.v0", "weave.v2"}
)

const (
	clientCode   = websocket.StatusCode(4001)
	clientReason = "genug – 足りた 🧵"
	serverCode   = websocket.StatusCode(3999)
	serverReason = "Schluß – 終わり 🪡"
)

// Found is what a side found of a conversation.
type Found struct {
	Received int    // messages that were what they should be, in order
	Fault    string // what was wrong with the one after these
	Protocol string
	Code     int // of the peer's Close; -1 if none came
	Reason   string
	Pings    int64 // that came
	Pongs    int64 // that answered own pings
	Read     int64 // bytes of the connection
	Written  int64
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("websocket: which one? server or client")
	}
	if err := flag.CommandLine.Parse(os.Args[2:]); err != nil {
		log.Fatal(err)
	}
	var err error
	switch os.Args[1] {
	case "server":
		err = serve()
	case "client":
		err = call()
	default:
		err = fmt.Errorf("websocket: no %q", os.Args[1])
	}
	if err != nil {
		log.Fatal(err)
	}
}

func compression() websocket.CompressionMode {
	switch *mode {
	case "takeover":
		return websocket.CompressionContextTakeover
	case "fresh":
		return websocket.CompressionNoContextTakeover
	}
	return websocket.CompressionDisabled
}

func serve() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("ready %d\n", listener.Addr().(*net.TCPAddr).Port)
	server := &http.Server{
		Handler: http.HandlerFunc(answer),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, counted{}, conn)
		},
	}
	return server.Serve(counting{listener})
}

func answer(w http.ResponseWriter, r *http.Request) {
	found := &Found{Code: -1}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols:    spoken,
		CompressionMode: compression(),
		OnPingReceived:  func(context.Context, []byte) bool { found.Pings++; return true },
	})
	if err != nil {
		log.Print(err) // It has answered already.
		return
	}
	closeAfter := -1
	if r.URL.Query().Get("closer") == "server" {
		closeAfter, _ = strconv.Atoi(r.URL.Query().Get("count"))
	}
	echo(r.Context(), conn, closeAfter, found)
	transport := r.Context().Value(counted{}).(*counted)
	found.Read, found.Written = transport.read.Load(), transport.written.Load()
	report(found)
}

// echo sends back what comes, if it is what should come, and pings now and then.
func echo(ctx context.Context, conn *websocket.Conn, closeAfter int, found *Found) {
	var pongs atomic.Int64
	defer func() { found.Pongs = pongs.Load() }()
	conversation(conn, found)
	for found.Received != closeAfter {
		isText, payload, err := read(ctx, conn)
		if err != nil {
			found.ended(err)
			return
		}
		if fault := compare(found.Received, isText, payload); fault != "" {
			found.Fault = fault
			_ = conn.Close(4400, "not what is expected")
			return
		}
		found.Received++
		if found.Received%1000 == 500 {
			go func() { // The Pong is found by the next reads.
				if conn.Ping(ctx) == nil {
					pongs.Add(1)
				}
			}()
		}
		if err := write(ctx, conn, found.Received, isText, payload); err != nil {
			found.Fault = err.Error()
			return
		}
	}
	if err := conn.Close(serverCode, serverReason); err != nil {
		found.Fault = err.Error()
	} else {
		found.Code, found.Reason = int(serverCode), serverReason // Close checks that the answer has the same.
	}
}

func call() error {
	found := &Found{Code: -1}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, *url, &websocket.DialOptions{
		Subprotocols:    offered,
		CompressionMode: compression(),
		OnPingReceived:  func(context.Context, []byte) bool { found.Pings++; return true },
	})
	if err != nil {
		return err
	}
	conversation(conn, found)
	failed := make(chan error, 1)
	var pongs atomic.Int64
	go func() {
		for index := range *count {
			if index%1000 == 500 {
				if err := conn.Ping(ctx); err != nil {
					failed <- err
					return
				}
				pongs.Add(1)
			}
			isText, payload := message(index)
			if err := write(ctx, conn, index, isText, payload); err != nil {
				failed <- err
				return
			}
		}
		failed <- nil
	}()
	for found.Received < *count {
		isText, payload, err := read(ctx, conn)
		if err != nil {
			return errors.Join(err, <-failed)
		}
		if fault := compare(found.Received, isText, payload); fault != "" {
			found.Fault = fault
			break
		}
		found.Received++
	}
	if err := <-failed; err != nil {
		return err
	}
	found.Pongs = pongs.Load()
	if found.Fault != "" {
		_ = conn.CloseNow()
	} else if closesHere() {
		if err := conn.Close(clientCode, clientReason); err != nil {
			return err
		}
		found.Code, found.Reason = int(clientCode), clientReason
	} else if _, _, err := conn.Read(ctx); err != nil {
		found.ended(err)
	} else {
		found.Fault = "more came than was sent"
	}
	report(found)
	return nil
}

func closesHere() bool {
	request, err := http.NewRequest(http.MethodGet, *url, nil)
	return err == nil && request.URL.Query().Get("closer") == "client"
}

func conversation(conn *websocket.Conn, found *Found) {
	conn.SetReadLimit(-1)
	found.Protocol = conn.Subprotocol()
}

func read(ctx context.Context, conn *websocket.Conn) (isText bool, payload []byte, err error) {
	kind, payload, err := conn.Read(ctx)
	return kind == websocket.MessageText, payload, err
}

// write sends a message whole, or every tenth in fragments.
func write(ctx context.Context, conn *websocket.Conn, index int, isText bool, payload []byte) error {
	kind := websocket.MessageBinary
	if isText {
		kind = websocket.MessageText
	}
	if index%10 != 0 {
		return conn.Write(ctx, kind, payload)
	}
	writer, err := conn.Writer(ctx, kind)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{payload[:len(payload)/3], payload[len(payload)/3 : len(payload)/2], payload[len(payload)/2:]} {
		if _, err := writer.Write(part); err != nil {
			return err
		}
	}
	return writer.Close()
}

func compare(index int, isText bool, payload []byte) string {
	shouldBeText, expected := message(index)
	if isText != shouldBeText || !bytes.Equal(payload, expected) {
		return fmt.Sprintf("message %d is %d bytes (text: %t) that it is not", index, len(payload), isText)
	}
	return ""
}

func (found *Found) ended(err error) {
	var closed websocket.CloseError
	if errors.As(err, &closed) {
		found.Code, found.Reason = int(closed.Code), closed.Reason
	} else {
		found.Fault = err.Error()
	}
}

func report(found *Found) {
	line, err := json.Marshal(found)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
}

// counting is a listener whose connections count their bytes.
type counting struct{ net.Listener }

func (l counting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &counted{Conn: conn}, nil
}

type counted struct {
	net.Conn
	read, written atomic.Int64
}

func (c *counted) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	c.read.Add(int64(n))
	return n, err
}

func (c *counted) Write(bytes []byte) (int, error) {
	n, err := c.Conn.Write(bytes)
	c.written.Add(int64(n))
	return n, err
}
