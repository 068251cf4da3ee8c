package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browserTimeout is far more than all pages of a test take, on a machine with twenty other things to do, too: with it a
// browser that hangs fails the test that waits for it.
const browserTimeout = 5 * time.Minute

// browser is a Chromium with one page, and what that page complained of and asked the network for.
type browser struct {
	t       *testing.T
	context context.Context
	*heard
}

// heard is what a page said.
type heard struct {
	mutex      sync.Mutex
	complaints []string // errors and warnings of scripts, of the content security policy, of the network
	requests   []string // URLs, without the page itself and what is in it
}

// newBrowser starts a Chromium without a window and without anything of the user's. At the end of the test it is gone
// with all its processes.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: make test-deps installs it", err)
	}
	group := make(chan *exec.Cmd, 1)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path),
		chromedp.UserDataDir(filepath.Join(t.TempDir(), "browser")), chromedp.DisableGPU, chromedp.WSURLReadTimeout(browserTimeout),
		chromedp.Flag("disable-crash-reporter", true),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			group <- cmd
		}))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's own refuses root
	}
	limited, cancel := context.WithTimeout(t.Context(), browserTimeout)
	allocator, free := chromedp.NewExecAllocator(limited, options...)
	page, closePage := chromedp.NewContext(allocator)
	b := &browser{t: t, context: page, heard: &heard{}}
	t.Cleanup(func() {
		closePage()
		free()
		cancel()
		endGroup(t, group)
	})
	if err := chromedp.Listen(page, b.listen); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	return b
}

// endGroup kills what is left of the browser's processes, and waits until they are gone: their folder is removed next.
func endGroup(t *testing.T, group <-chan *exec.Cmd) {
	t.Helper()
	select {
	case cmd := <-group:
		if cmd.Process == nil {
			return
		}
		gone := func() bool { return errors.Is(syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL), syscall.ESRCH) }
		waitFor(t, "the browser's processes to be gone", gone)
	default: // it was never started
	}
}

func (h *heard) listen(event any) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, "data:") && url != e.DocumentURL {
			h.requests = append(h.requests, url)
		}
	case *log.EventEntryAdded:
		h.complaints = append(h.complaints, e.Entry.Text)
	case *runtime.EventExceptionThrown:
		h.complaints = append(h.complaints, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		h.complaints = append(h.complaints, "console."+string(e.Type))
	}
}

// within is the same browser for a part of the test.
func (b *browser) within(t *testing.T) *browser { return &browser{t, b.context, b.heard} }

// do does something on the page.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.context, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// call gives the browser a command of its protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], parameters P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.context, command, parameters)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// open loads a file into a window of a size.
func (b *browser) open(path string, width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), chromedp.Navigate("file://"+path))
}

// eval returns what an expression is on the page.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.context, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// quiet fails the test when the page complained of anything, or asked the network for anything.
func (b *browser) quiet() {
	b.t.Helper()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.complaints) > 0 || len(b.requests) > 0 {
		b.t.Errorf("the page complains: %q, and asks for %q", b.complaints, b.requests)
	}
	b.complaints, b.requests = nil, nil
}
