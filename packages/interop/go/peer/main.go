// Command peer is a server or a client of Go's, for tests that drive it from outside: a server prints
// "ready PLAIN TLS" with its ports, a client reads orders from its standard input and prints what came of
// them, one JSON object a line each.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"sync"
	"time"
)

var (
	certFile = flag.String("cert", "", "file of the server's certificate")
	keyFile  = flag.String("key", "", "file of its key")
	caFile   = flag.String("ca", "", "file of the certificate to trust")
	way      = flag.String("way", "h1", "how a client connects: h1, h2c, https, h2, h3, or xh2c for golang.org/x/net/http2")
	maxAge   = flag.Duration("max-age", 0, "after which a gRPC server sends GOAWAY on a connection; 0: never")
	minPing  = flag.Duration("min-ping", 0, "how often a gRPC server lets clients ping; 0: its default of 5 minutes")
	retry    = flag.Bool("retry", false, "a QUIC server makes clients show first that they receive at their address")
	idLength = flag.Int("id-length", 4, "octets in a connection id of QUIC")
	idle     = flag.Duration("idle", 30*time.Second, "after which QUIC gives up a silent connection")
	version2 = flag.Bool("version2", false, "a QUIC client speaks version 2 (RFC 9369) and no other")
	address  = flag.String("address", "", "host:port a client connects to")
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("peer: which one? http-server, http-client, quic-server, grpc-server or grpc-client")
	}
	if err := flag.CommandLine.Parse(os.Args[2:]); err != nil {
		log.Fatal(err)
	}
	var err error
	switch os.Args[1] {
	case "http-server":
		err = serveHTTP()
	case "quic-server":
		err = serveQUIC()
	case "http-client":
		err = askHTTP()
	case "grpc-server":
		err = serveGRPC()
	case "grpc-client":
		err = callGRPC()
	default:
		err = fmt.Errorf("peer: no %q", os.Args[1])
	}
	if err != nil {
		log.Fatal(err)
	}
}

// listen opens the two ports of a server and says which they are.
func listen() (plain, secure net.Listener, err error) {
	if plain, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, nil, err
	}
	if secure, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, nil, err
	}
	fmt.Printf("ready %d %d\n", plain.Addr().(*net.TCPAddr).Port, secure.Addr().(*net.TCPAddr).Port)
	return plain, secure, nil
}

func identity() (tls.Certificate, error) {
	return tls.LoadX509KeyPair(*certFile, *keyFile)
}

func trusted() (*tls.Config, error) {
	pem, err := os.ReadFile(*caFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", *caFile)
	}
	return &tls.Config{RootCAs: pool, ServerName: "localhost"}, nil
}

// orders runs every order on standard input at once, and prints each outcome when it is there.
func orders[Order, Outcome any](carryOut func(Order) Outcome) error {
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	var printing sync.Mutex
	decoder := json.NewDecoder(in)
	for {
		var order Order
		if err := decoder.Decode(&order); err != nil {
			return nil // The test is over.
		}
		go func() {
			outcome := carryOut(order)
			printing.Lock()
			defer printing.Unlock()
			if err := out.Encode(outcome); err != nil {
				log.Fatal(err)
			}
		}()
	}
}
