package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv4"
)

// quicClient is quic-go's HTTP/3, on one connection at a time, which can be told to do what only QUIC can.
type quicClient struct {
	*http3.Transport
	config     *tls.Config
	mutex      sync.Mutex
	connection *quic.Conn
	socket     *net.UDPConn
}

// tokens keeps what servers gave for later connections.
var tokens = quic.NewLRUTokenStore(1, 4)

func newQUICClient() (*quicClient, error) {
	config, err := trusted()
	if err != nil {
		return nil, err
	}
	config.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	client := &quicClient{config: config}
	client.Transport = client.transport()
	return client, nil
}

func (c *quicClient) transport() *http3.Transport {
	return &http3.Transport{
		TLSClientConfig:        c.config,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 256 * 1024,
		QUICConfig: &quic.Config{
			MaxIdleTimeout:             *idle,
			TokenStore:                 tokens,
			InitialStreamReceiveWindow: 64 * 1024,
			Versions:                   versions(),
		},
		Dial: func(ctx context.Context, address string, config *tls.Config, options *quic.Config) (*quic.Conn, error) {
			path, to, err := newPath(address)
			if err != nil {
				return nil, err
			}
			connection, err := path.DialEarly(ctx, to, config, options)
			if err == nil {
				c.mutex.Lock()
				c.connection = connection
				c.socket = path.Conn.(*net.UDPConn)
				c.mutex.Unlock()
			}
			return connection, err
		},
	}
}

func versions() []quic.Version {
	if *version2 {
		return []quic.Version{quic.Version2}
	}
	return nil
}

func newPath(address string) (*quic.Transport, *net.UDPAddr, error) {
	to, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		return nil, nil, err
	}
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	return &quic.Transport{Conn: socket, ConnectionIDLength: *idLength}, to, err
}

// do carries out what is no request, and returns what came of it.
func (c *quicClient) do(what string, payload []byte) (string, error) {
	c.mutex.Lock()
	connection := c.connection
	c.mutex.Unlock()
	if connection == nil && what != "leave" {
		return "", errors.New("no connection yet")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	switch what {
	case "migrate":
		transport, _, err := newPath(*address)
		if err != nil {
			return "", err
		}
		path, err := connection.AddPath(transport)
		if err != nil {
			return "", err
		}
		if err := path.Probe(ctx); err != nil {
			return "", err
		}
		if err := path.Switch(); err != nil {
			return "", err
		}
		return transport.Conn.LocalAddr().String(), deafen(c.socket)
	case "leave":
		err := c.Close()
		c.Transport = c.transport()
		return "", err
	case "tunnel":
		return c.tunnel(ctx, payload)
	case "ended":
		select {
		case <-connection.Context().Done():
			return context.Cause(connection.Context()).Error(), nil
		case <-ctx.Done():
			return "", errors.New("it stands")
		}
	}
	return "", fmt.Errorf("no way to %q", what)
}

// deafen makes a socket lose whatever comes.
func deafen(socket *net.UDPConn) error {
	nothing, err := bpf.Assemble([]bpf.Instruction{bpf.RetConstant{Val: 0}})
	if err != nil {
		return err
	}
	return ipv4.NewPacketConn(socket).SetBPF(nothing)
}

// tunnel sends payload through an extended CONNECT (RFC 9220), on a connection of its own, and returns what comes back.
func (c *quicClient) tunnel(ctx context.Context, payload []byte) (string, error) {
	path, to, err := newPath(*address)
	if err != nil {
		return "", err
	}
	config := http3.ConfigureTLSConfig(c.config)
	connection, err := path.Dial(ctx, to, config, &quic.Config{})
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "") }()
	conn := new(http3.Transport).NewClientConn(connection)
	select {
	case <-conn.ReceivedSettings():
		if !conn.Settings().EnableExtendedConnect {
			return "", errors.New("the server does not offer extended CONNECT")
		}
	case <-ctx.Done():
		return "", errors.New("no SETTINGS")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodConnect, "https://"+*address+"/quic/tunnel", nil)
	if err != nil {
		return "", err
	}
	request.Proto = "websocket"
	request.Header.Set("sec-websocket-version", "13")
	stream, err := conn.OpenRequestStream(ctx)
	if err != nil {
		return "", err
	}
	if err := stream.SendRequestHeader(request); err != nil {
		return "", err
	}
	response, err := stream.ReadResponse()
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("answered with %d", response.StatusCode)
	}
	go func() {
		_, _ = io.Copy(stream, bytes.NewReader(payload))
		_ = stream.Close()
	}()
	back, err := io.ReadAll(stream)
	if err == nil && !bytes.Equal(back, payload) {
		err = errors.New("something else came back")
	}
	return fmt.Sprint(len(back)), err
}
