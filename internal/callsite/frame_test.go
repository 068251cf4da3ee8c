package callsite

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

func TestFrameName(t *testing.T) {
	for payload, want := range map[string]string{
		"f\t/a/b.c\t7\tapp+0x10\n": "b.c:7 f", "\t\t\t/usr/bin/x+0x6fc69\n": "x+0x6fc69", "g\t\t\tapp+0x10\n": "g app+0x10",
		"g\t\t\tapp\n": "g app", "f\tb.c\t0\tapp\n": "b.c f",
	} {
		if got := FramesAfterWrappers([]byte(payload))[0]; got.ShortText() != want {
			t.Errorf("%q: %q, want %q", payload, got.ShortText(), want)
		}
	}
}

func TestSiteName(t *testing.T) {
	const (
		pool    = "allocate\t/usr/include/pool.hpp\t80\tapp+0x10\n"
		dark    = "\t\t\t/usr/lib/x86_64-linux-gnu/libcv.so.4.6+0x99\n"
		script  = "step\tsolve.py\t42\tsolve.py\n"
		module  = "zeros\t/usr/lib/python3/dist-packages/cl/array.py\t7\t/usr/lib/python3/dist-packages/cl/array.py\n"
		start   = "_run\t<frozen runpy>\t88\t<frozen runpy>\n"
		own     = "main\tmain.c\t12\tapp+0x20\n"
		bind    = "Java_create\tjni.c\t9\t/opt/libjni.so+0x20\n"
		native  = "long Cl.create(long)\t\t\t+0x7f0000000010\n"
		method  = "void Solver.step(int)\t\t\t+0x7f0000000020\n"
		interp  = "Interpreter\t\t\t+0x7f0000000030\n"
		node    = "step\t/app/solve.js\t42\t+0x7f0000000040\n"
		export  = "cv_copy\t\t\t/usr/lib/x86_64-linux-gnu/libcv.so.4.6+0x88\n"
		other   = "run\t\t\t/usr/lib/libjob.so.1+0x77\n"
		ours    = "\t\t\t/opt/lib/libmine.so+0x66\n"
		mine    = "mine_get\t\t\t/opt/lib/libmine.so+0x55\n"
		module2 = "create\t/app/node_modules/cl/index.js\t7\t+0x7f0000000050\n"
	)
	for payload, want := range map[string]string{
		own: "main.c:12 main", pool + own: "main.c:12 main via allocate", dark + own: "main.c:12 main via libcv",
		dark: "libcv.so.4.6+0x99", dark + pool: "pool.hpp:80 allocate via libcv", dark + module + script: "solve.py:42 step via libcv",
		"clCreateBuffer\tcl.c\t1\tapp+0x5\n" + own: "main.c:12 main", "cl::Buffer\tcl.hpp\t1\tapp+0x5\n" + module + script: "solve.py:42 step via zeros",
		dark + dark + export: "cv_copy libcv.so.4.6+0x88", dark + other + export: "run libjob.so.1+0x77 via libcv", export + other: "cv_copy libcv.so.4.6+0x88",
		dark + export + own: "main.c:12 main via libcv", ours + mine + own: "main.c:12 main via libmine", ours + own: "main.c:12 main via libmine", mine + own: "mine_get libmine.so+0x55", ours + "\t\t\t/opt/app+0x1\n": "libmine.so+0x66",
		dark + ours + mine: "mine_get libmine.so+0x55 via libcv",
		start:              "<frozen runpy>:88 _run", "\t\t\t/opt/app/bin/app+0x1\n": "app+0x1", dark + "\t\t\t/usr/bin/app+0x1\n": "app+0x1 via libcv",
		bind + native + method: "void Solver.step(int) via Java_create", bind + interp + method + own: "void Solver.step(int) via Java_create",
		bind + native + interp: "long Cl.create(long) via Java_create", bind + interp: "jni.c:9 Java_create", bind + "\t\t\t+0x7f0000000060\n": "jni.c:9 Java_create",
		bind + interp + module2 + node: "solve.js:42 step via Java_create", node: "solve.js:42 step",
		dark + "f\t<string>\t3\t<string>\n": "<string>:3 f via libcv", "": "",
	} {
		r := wire.SiteFields{Tag: 1}.Record([]byte(payload))
		if got := TagNameOf(&r); got != want {
			t.Errorf("%q: %q, want %q", payload, got, want)
		}
	}
}

// TestOwnWrappers: patterns match functions, and names where there is no function.
func TestOwnWrappers(t *testing.T) {
	defer SetWrapperPattern(nil)
	const pool, dark, own = "my_alloc\tpool.c\t88\tapp+0x5\n", "\t\t\t/opt/lib/libmem.so.2+0x99\n", "main\tmain.c\t12\tapp+0x20\n"
	for pattern, want := range map[string]string{
		"^my_alloc$": "main.c:12 main via libmem", "^pool\\.c:": "main.c:12 main via libmem", "my_alloc|^libmem": "main.c:12 main",
		".": "pool.c:88 my_alloc", "other": "pool.c:88 my_alloc", "^libmem": "pool.c:88 my_alloc",
	} {
		SetWrapperPattern(regexp.MustCompile(pattern))
		r := wire.SiteFields{Tag: 1}.Record([]byte(pool + dark + own))
		if got := TagNameOf(&r); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	const bind, step, main = "\t\t\t/usr/lib/python3/_cl.so+0x99\n", "step\tsolve.py\t42\tsolve.py\n", "<module>\tsolve.py\t50\tsolve.py\n"
	for pattern, want := range map[string]string{
		"^step$": "solve.py:50 <module> via _cl", `solve\.py:42 `: "solve.py:50 <module> via _cl", ".": "solve.py:42 step via _cl", "other": "solve.py:42 step via _cl",
	} {
		SetWrapperPattern(regexp.MustCompile(pattern))
		r := wire.SiteFields{Tag: 1}.Record([]byte(bind + step + main))
		if got := TagNameOf(&r); got != want {
			t.Errorf("below a binding, %s: %q, want %q", pattern, got, want)
		}
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0B", 1023: "1023B", 1024: "1.0K", 1536: "1.5K", 64 << 20: "64.0M", 1 << 63: "8.0E",
	} {
		if got := narrowSizeText(n); got != want {
			t.Errorf("sizeText(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestParseIsBounded(t *testing.T) {
	if got := len(parseFrames([]byte(strings.Repeat("f\n", 1000)))); got != framesMax {
		t.Errorf("%d frames", got)
	}
}

// FuzzFrames reads call stacks of programs: what is shown has no control characters, and is bounded.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("step\tmain.c\t88\tapp+0x1\nmain\tmain.c\t99999999999999999999\tapp+0xzz\n"))
	f.Add([]byte("\x1b[31m\t\t-1\t\xff+0x\n\n\t\t\t\n"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		frames := FramesAfterWrappers(payload)
		if len(frames) > framesMax {
			t.Errorf("%d frames", len(frames))
		}
		for i := range frames {
			if text := frames[i].ShortText() + frames[i].Module; strings.ContainsFunc(text, unicode.IsControl) || frames[i].Line < 0 {
				t.Errorf("%q", text)
			}
		}
	})
}
