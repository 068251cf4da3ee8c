package main

import (
	"context"
	"errors"
	"io"
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

// heldJob is a runner whose job lasts until a test ends it.
type heldJob struct {
	fnpb.UnimplementedBeamFnControlServer
	asked, end chan bool
}

func (h *heldJob) Control(stream fnpb.BeamFnControl_ControlServer) error {
	h.asked <- true
	select {
	case <-h.end:
	case <-stream.Context().Done():
	}
	return nil
}

// serveJob serves a job. The arguments make this program a worker of it.
func serveJob(t *testing.T) (job *heldJob, server *grpc.Server, arguments []string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, job = grpc.NewServer(), &heldJob{asked: make(chan bool, 1), end: make(chan bool)}
	fnpb.RegisterBeamFnControlServer(server, job)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	endpoint := listener.Addr().String()
	return job, server, []string{"--worker=true", "--id=1", "--options={}", "--control_endpoint=" + endpoint, "--logging_endpoint=" + endpoint}
}

// TestWorkerEndsWithItsJob: a pool of workers ends only the worker's parent.
func TestWorkerEndsWithItsJob(t *testing.T) {
	job, _, arguments := serveJob(t)
	close(job.end)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, os.Args[0], arguments...).CombinedOutput()
	if err != nil || ctx.Err() != nil || len(job.asked) != 1 {
		t.Errorf("%v, %v, asked %d times: %s", err, ctx.Err(), len(job.asked), out)
	}
}

// TestWorkerOfAKilledParent: a worker whose parent was killed works on, and ends with its job or the job's server.
func TestWorkerOfAKilledParent(t *testing.T) {
	for name, end := range map[string]func(*heldJob, *grpc.Server){
		"job": func(job *heldJob, _ *grpc.Server) { close(job.end) }, "server": func(_ *heldJob, server *grpc.Server) { server.Stop() },
	} {
		job, server, arguments := serveJob(t)
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		parent := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `"$0" "$@" & wait`, os.Args[0]}, arguments...)...)
		parent.Stdout, parent.Stderr = write, write
		if err := errors.Join(parent.Start(), write.Close()); err != nil {
			t.Fatal(err)
		}
		<-job.asked
		_ = parent.Process.Kill()
		_ = parent.Wait()
		_ = read.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.ReadAll(read); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the worker ended with its parent: %v", name, err)
		}
		end(job, server)
		_ = read.SetReadDeadline(time.Now().Add(30 * time.Second))
		if out, err := io.ReadAll(read); err != nil { // no process has the other end of the pipe
			t.Errorf("%s: the worker stays: %v, %s", name, err, out)
		}
		_ = read.Close()
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
