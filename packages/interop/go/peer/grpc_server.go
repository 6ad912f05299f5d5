package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// calls is the service heddle.Interop.
type calls struct{ cancelled, late atomic.Int64 }

func serveGRPC() error {
	certificate, err := identity()
	if err != nil {
		return err
	}
	plain, secure, err := listen()
	if err != nil {
		return err
	}
	service := new(calls)
	open := func(options ...grpc.ServerOption) *grpc.Server {
		options = append(options, grpc.ForceServerCodec(rawCodec{}), grpc.MaxRecvMsgSize(math.MaxInt32))
		if *maxAge > 0 {
			options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: *maxAge, MaxConnectionAgeGrace: 10 * time.Second}))
		}
		if *minPing > 0 {
			options = append(options, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: *minPing}))
		}
		server := grpc.NewServer(options...)
		server.RegisterService(&description, service)
		return server
	}
	go func() { _ = open(grpc.Creds(credentials.NewServerTLSFromCert(&certificate))).Serve(secure) }()
	return open().Serve(plain)
}

var description = grpc.ServiceDesc{
	ServiceName: "heddle.Interop",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		unary("Unary", (*calls).unary),
		unary("Fail", (*calls).fail),
		unary("Wait", (*calls).wait),
		unary("Seen", (*calls).seen),
	},
	Streams: []grpc.StreamDesc{
		{StreamName: "Server", Handler: streamed((*calls).server), ServerStreams: true},
		{StreamName: "Client", Handler: streamed((*calls).client), ClientStreams: true},
		{StreamName: "Both", Handler: streamed((*calls).both), ServerStreams: true, ClientStreams: true},
		{StreamName: "FailLate", Handler: streamed((*calls).failLate), ServerStreams: true},
	},
}

func unary(name string, method func(*calls, context.Context, []byte) ([]byte, error)) grpc.MethodDesc {
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(service any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			request := new(message)
			if err := decode(request); err != nil {
				return nil, err
			}
			reply, err := method(service.(*calls), ctx, request.octets)
			if err != nil {
				return nil, err
			}
			return &message{reply}, nil
		},
	}
}

func streamed(method func(*calls, grpc.ServerStream) error) grpc.StreamHandler {
	return func(service any, stream grpc.ServerStream) error { return method(service.(*calls), stream) }
}

// unary answers with what it was sent, and its metadata with that of the call: x-asked and x-asked-bin.
func (*calls) unary(ctx context.Context, request []byte) ([]byte, error) {
	asked, _ := metadata.FromIncomingContext(ctx)
	header := metadata.MD{"x-answered": asked.Get("x-asked"), "x-answered-bin": asked.Get("x-asked-bin")}
	if deadline, ok := ctx.Deadline(); ok {
		header.Set("x-deadline", fmt.Sprint(time.Until(deadline).Milliseconds()))
	}
	if who, ok := peer.FromContext(ctx); ok {
		header.Set("x-connection", who.Addr.String())
	}
	trailer := metadata.MD{"x-last": asked.Get("x-asked"), "x-last-bin": asked.Get("x-asked-bin")}
	if err := grpc.SendHeader(ctx, header); err != nil {
		return nil, err
	}
	return request, grpc.SetTrailer(ctx, trailer)
}

// fail is told a code and a message, and returns no header.
func (*calls) fail(_ context.Context, request []byte) ([]byte, error) {
	return nil, failure(request)
}

func failure(request []byte) error {
	code, text, _ := strings.Cut(string(request), " ")
	number, err := strconv.Atoi(code)
	if err != nil {
		return err
	}
	detailed, err := status.New(codes.Code(number), text).WithDetails(wrapperspb.String("why"))
	if err != nil {
		return err
	}
	return detailed.Err()
}

// wait ends with its call.
func (c *calls) wait(ctx context.Context, _ []byte) ([]byte, error) {
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.late.Add(1)
	} else {
		c.cancelled.Add(1)
	}
	return nil, status.FromContextError(ctx.Err()).Err()
}

// seen tells how many calls were cancelled, and how many of them by their deadline.
func (c *calls) seen(context.Context, []byte) ([]byte, error) {
	return fmt.Appendf(nil, "%d", c.cancelled.Load()+c.late.Load()), nil
}

// server is told how many messages to send, and of how many octets.
func (*calls) server(stream grpc.ServerStream) error {
	request := new(message)
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	var count, size int
	if _, err := fmt.Sscan(string(request.octets), &count, &size); err != nil {
		return err
	}
	for i := range count {
		if err := stream.SendMsg(&message{bytes.Repeat([]byte{byte(i)}, size)}); err != nil {
			return err
		}
	}
	return nil
}

// client tells how many messages came, of how many octets together, and their sum.
func (*calls) client(stream grpc.ServerStream) error {
	count, length, sum := 0, 0, sha256.New()
	for {
		request := new(message)
		err := stream.RecvMsg(request)
		if err == io.EOF {
			return stream.SendMsg(&message{fmt.Appendf(nil, "%d %d %x", count, length, sum.Sum(nil))})
		}
		if err != nil {
			return err
		}
		count++
		length += len(request.octets)
		sum.Write(request.octets)
	}
}

// both sends back what comes, when it comes.
func (*calls) both(stream grpc.ServerStream) error {
	for {
		request := new(message)
		err := stream.RecvMsg(request)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.SendMsg(request); err != nil {
			return err
		}
	}
}

// failLate fails after two messages.
func (*calls) failLate(stream grpc.ServerStream) error {
	request := new(message)
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	for range 2 {
		if err := stream.SendMsg(&message{[]byte("so far")}); err != nil {
			return err
		}
	}
	return failure(request.octets)
}
