package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/options/jobopts"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners"
	"google.golang.org/grpc"
)

// shortJob is a runner whose job ends at once.
type shortJob struct {
	fnpb.UnimplementedBeamFnControlServer
	asked chan bool
}

func (s *shortJob) Control(fnpb.BeamFnControl_ControlServer) error {
	s.asked <- true
	return nil
}

// TestWorkerEndsWithItsJob: a pool of workers ends only the worker's parent.
func TestWorkerEndsWithItsJob(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, job := grpc.NewServer(), &shortJob{asked: make(chan bool, 1)}
	fnpb.RegisterBeamFnControlServer(server, job)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	endpoint := listener.Addr().String()
	out, err := exec.CommandContext(ctx, os.Args[0], "--worker=true", "--id=1", "--options={}", "--control_endpoint="+endpoint, "--logging_endpoint="+endpoint).CombinedOutput()
	if err != nil || ctx.Err() != nil || len(job.asked) != 1 {
		t.Errorf("%v, %v, asked %d times: %s", err, ctx.Err(), len(job.asked), out)
	}
}

// TestSilentServer: a port that takes connections, and does not answer, is no job server.
func TestSilentServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	runner, endpoint := *runners.Runner, *jobopts.Endpoint
	defer func() { *runners.Runner, *jobopts.Endpoint = runner, endpoint }()
	*runners.Runner, *jobopts.Endpoint = "universal", listener.Addr().String()
	begun := time.Now()
	if err := checkJobServer(t.Context()); err == nil || !strings.Contains(err.Error(), "no job server answered") || time.Since(begun) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}
