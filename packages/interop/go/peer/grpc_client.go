package main

import (
	"context"
	"io"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Call is one call to make.
type Call struct {
	ID       int
	Method   string
	Messages [][]byte
	// Metadata of names that end with -bin is octets.
	Metadata []Entry
	// Timeout is the deadline, CancelAfter when the call is cancelled; ms, 0: never.
	Timeout, CancelAfter int
	Gzip                 bool
	// InTurn: no message is sent before the answer to the one before has come.
	InTurn bool
}

// Entry is one piece of metadata.
type Entry struct {
	Name  string
	Value []byte
}

// Outcome is what came of a call.
type Outcome struct {
	ID              int
	Code            int
	Message         string
	Details         []byte
	Replies         [][]byte
	Header, Trailer []Entry
}

func callGRPC() error {
	credential := insecure.NewCredentials()
	if *way == "h2" {
		config, err := trusted()
		if err != nil {
			return err
		}
		credential = credentials.NewTLS(config)
	}
	connection, err := grpc.NewClient("passthrough:///"+*address,
		grpc.WithTransportCredentials(credential),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	if err != nil {
		return err
	}
	return orders(func(call Call) Outcome {
		outcome, err := carryOut(connection, call)
		outcome.ID = call.ID
		state := status.Convert(err)
		outcome.Code, outcome.Message = int(state.Code()), state.Message()
		if len(state.Proto().GetDetails()) > 0 {
			if outcome.Details, err = (proto.MarshalOptions{Deterministic: true}).Marshal(state.Proto()); err != nil {
				outcome.Code, outcome.Message = int(codes.DataLoss), err.Error()
			}
		}
		return outcome
	})
}

func carryOut(connection *grpc.ClientConn, call Call) (outcome Outcome, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if call.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(call.Timeout)*time.Millisecond)
		defer cancel()
	}
	if call.CancelAfter > 0 {
		time.AfterFunc(time.Duration(call.CancelAfter)*time.Millisecond, cancel)
	}
	for _, entry := range call.Metadata {
		ctx = metadata.AppendToOutgoingContext(ctx, entry.Name, string(entry.Value))
	}
	var options []grpc.CallOption
	if call.Gzip {
		options = append(options, grpc.UseCompressor("gzip"))
	}
	name := "/heddle.Interop/" + call.Method
	kind := grpc.StreamDesc{StreamName: call.Method}
	switch call.Method {
	case "Server", "FailLate":
		kind.ServerStreams = true
	case "Client":
		kind.ClientStreams = true
	case "Both":
		kind.ServerStreams, kind.ClientStreams = true, true
	default:
		reply, header, trailer := new(message), metadata.MD{}, metadata.MD{}
		options = append(options, grpc.Header(&header), grpc.Trailer(&trailer))
		if err = connection.Invoke(ctx, name, &message{call.Messages[0]}, reply, options...); err == nil {
			outcome.Replies = [][]byte{reply.octets}
		}
		outcome.Header, outcome.Trailer = entries(header), entries(trailer)
		return outcome, err
	}
	stream, err := connection.NewStream(ctx, &kind, name, options...)
	if err != nil {
		return outcome, err
	}
	outcome.Replies, err = converse(stream, call)
	header, _ := stream.Header()
	outcome.Header, outcome.Trailer = entries(header), entries(stream.Trailer())
	return outcome, err
}

func converse(stream grpc.ClientStream, call Call) (replies [][]byte, err error) {
	receive := func() error {
		reply := new(message)
		if err := stream.RecvMsg(reply); err != nil {
			return err
		}
		replies = append(replies, reply.octets)
		return nil
	}
	send := func() {
		for _, octets := range call.Messages {
			if stream.SendMsg(&message{octets}) != nil {
				return // RecvMsg tells why.
			}
		}
		_ = stream.CloseSend()
	}
	if call.InTurn {
		for _, octets := range call.Messages {
			if stream.SendMsg(&message{octets}) != nil {
				break
			}
			if err := receive(); err != nil {
				return replies, err
			}
		}
		_ = stream.CloseSend()
	} else {
		go send()
	}
	for {
		if err := receive(); err == io.EOF {
			return replies, nil
		} else if err != nil {
			return replies, err
		}
	}
}

func entries(md metadata.MD) []Entry {
	all := []Entry{}
	for name, values := range md {
		for _, value := range values {
			all = append(all, Entry{strings.ToLower(name), []byte(value)})
		}
	}
	return all
}
