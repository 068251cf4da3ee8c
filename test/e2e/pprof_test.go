package e2e

import (
	"fmt"
	"net"
	"testing"

	"github.com/chromedp/chromedp"
)

// freePort returns a free port of this host.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().(*net.TCPAddr).Port
}

// TestPprofInABrowser opens a profile in pprof's own pages: its flame graph shows the functions of the call sites.
func TestPprofInABrowser(t *testing.T) {
	t.Parallel()
	file := exportAs(t, record(t, example("leak"), "3", "1M"), "pprof", "--at", "end")
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	start(t, command{args: []string{"go", "tool", "pprof", "-no_browser", "-http=" + address, file}})
	waitFor(t, "pprof to listen on "+address, func() bool {
		c, err := net.Dial("tcp", address)
		return err == nil && c.Close() == nil
	})
	b := newBrowser(t)
	b.do(chromedp.EmulateViewport(1200, 800), chromedp.Navigate("http://"+address+"/ui/flamegraph"))
	const shown = `[...document.querySelectorAll("#stack-chart .boxtext")].some(e => e.textContent.includes("forget_result") && e.getBoundingClientRect().width > 0)`
	waitFor(t, "forget_result in the flame graph", func() bool { return eval[bool](b, shown) })
	b.do(chromedp.Navigate("http://" + address + "/ui/top?si=alloc_space"))
	const listed = `document.body.innerText.includes("create_temporary") && document.body.innerText.includes("forget_result")`
	waitFor(t, "both call sites in the list of what was created", func() bool { return eval[bool](b, listed) })
}
