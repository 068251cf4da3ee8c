package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// checkCreate checks a sample of create.
func checkCreate(tb testing.TB, s *wire.Sample) {
	tb.Helper()
	thread, size := s.Argument[1], s.Argument[2]
	want, status := 7000000+thread*100000+size, int32(0)
	if size%16 == 15 {
		want, status = 0, -61
	}
	if s.Sight != wire.SightCall || s.Argument[0] != 7 || s.Result != want || s.Error != status {
		tb.Fatalf("create(%v) = %d, error %d; want %d, %d", s.Argument, s.Result, s.Error, want, status)
	}
	if s.Time < s.Entered || s.Entered == 0 {
		tb.Fatalf("entered at %d, returned at %d", s.Entered, s.Time)
	}
}

func TestPairsCallsOfThreads(t *testing.T) {
	kinds(t, Options{}, func(t *testing.T, k *Kernel) {
		const threads, rounds = 4, 3000
		d := drive(t)
		judge(t, k, d.pid, Watch)
		attach(t, k, d.pid, create)
		d.do(fmt.Sprintf("run %d %d", threads, rounds))
		next, tids, last := map[uint64]uint64{}, map[uint64]uint32{}, map[uint64]uint64{}
		for _, s := range gather(t, k, threads*rounds) {
			checkCreate(t, &s)
			thread := s.Argument[1]
			if s.Argument[2] != next[thread] || s.Time < last[thread] {
				t.Fatalf("thread %d: call %d at %d after call %d at %d", thread, s.Argument[2], s.Time, next[thread], last[thread])
			}
			if tid, known := tids[thread]; int(s.Pid) != d.pid || known && tid != s.Tid {
				t.Fatalf("thread %d is %d of %d, was %d of %d", thread, s.Tid, s.Pid, tid, d.pid)
			}
			next[thread], tids[thread], last[thread] = next[thread]+1, s.Tid, s.Time
		}
		if calls, _ := k.LostCallsOfAll(); calls != 0 {
			t.Errorf("%d calls lost", calls)
		}
	})
}

func TestCopies(t *testing.T) {
	kinds(t, Options{}, func(t *testing.T, k *Kernel) {
		d := drive(t)
		judge(t, k, d.pid, Watch)
		attach(t, k, 0, set, name, list)
		d.SendLine("arguments")
		var handle uint64
		if _, err := fmt.Sscanf(d.NextLine(), "0x%x", &handle); err != nil {
			t.Fatal(err)
		}
		got := gather(t, k, 10)
		if c := got[0].CopiedArgument(0); c == nil || binary.LittleEndian.Uint64(c) != handle {
			t.Errorf("the memory given to a kernel is %x, want %x", c, handle)
		}
		for i, s := range got[1:6] {
			if s.Function != set || s.Result != uint64(i+1) || s.Copied != [2]uint8{} || s.Copies != nil {
				t.Errorf("set %d: function %d, result %d, copied %v, want no copy", i+1, s.Function, s.Result, s.Copied)
			}
		}
		text, _, _ := bytes.Cut(got[6].CopiedArgument(1), []byte{0})
		if string(text) != "sum_of_squares" || got[6].CopiedArgument(0) != nil || got[6].Result != 0 {
			t.Errorf("name: %q and %x, result %d", text, got[6].CopiedArgument(0), got[6].Result)
		}
		checkList(t, &got[7], 3)
		checkList(t, &got[8], 16)
		if got[9].CopiedArgument(0) != nil {
			t.Errorf("a list at no address: %x", got[9].CopiedArgument(0))
		}
	})
}

// checkList checks a copy of n values, followed by zeros.
func checkList(t *testing.T, s *wire.Sample, n int) {
	t.Helper()
	c := s.CopiedArgument(0)
	for i := 0; i < len(c)/8; i++ {
		want := uint64(0)
		if i < n {
			want = 1000 + uint64(i)
		}
		if v := binary.LittleEndian.Uint64(c[i*8:]); v != want {
			t.Errorf("value %d is %d, want %d", i, v, want)
		}
	}
	if len(c) != wire.CallData/2 {
		t.Errorf("%d bytes of values", len(c))
	}
}

// TestEvent: the address of an event lies on the stack, and may be none.
func TestEvent(t *testing.T) {
	kinds(t, Options{Uses: true}, func(t *testing.T, k *Kernel) {
		d := drive(t)
		judge(t, k, d.pid, Watch)
		attach(t, k, 0, launch)
		d.do("launch 70")
		got := gather(t, k, 2)
		if got[0].Event != 71 || got[1].Event != 0 || got[0].Argument != got[1].Argument {
			t.Errorf("%+v", got)
		}
	})
}

func TestEntryReportsCaller(t *testing.T) {
	d := drive(t)
	k := open(t, Options{Uses: true})
	judge(t, k, d.pid, Watch)
	attach(t, k, 0, use)
	d.do("use 5")
	s := gather(t, k, 1)[0]
	if s.Function != use || s.Argument[0] != 5 || s.Time != s.Entered || s.Sp != 0 {
		t.Errorf("use: %+v", s.Call)
	}
	if path, _ := mappingAt(t, d.pid, s.Ip); path != programs.driver {
		t.Errorf("called from %#x in %q, want the driver", s.Ip, path)
	}
}

// mappingAt returns the mapping of a process at an address.
func mappingAt(tb testing.TB, pid int, address uint64) (path string, end uint64) {
	tb.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		from, to, _ := strings.Cut(fields[0], "-")
		start, _ := strconv.ParseUint(from, 16, 64)
		end, _ = strconv.ParseUint(to, 16, 64)
		if address >= start && address < end {
			return fields[len(fields)-1], end
		}
	}
	return "", 0
}

func TestStackIsThatOfTheCaller(t *testing.T) {
	kinds(t, Options{Stacks: true}, func(t *testing.T, k *Kernel) {
		d := drive(t)
		judge(t, k, d.pid, Watch)
		attach(t, k, d.pid, create)
		d.SendLine("deep")
		var at uint64
		if _, err := fmt.Sscanf(d.NextLine(), "0x%x", &at); err != nil {
			t.Fatal(err)
		}
		s := gather(t, k, 1)[0]
		if len(s.Memory) != wire.CallStack || s.Shortened != 0 || at < s.Sp || at-s.Sp > 1024 {
			t.Fatalf("%d bytes of stack from %#x, the pattern is at %#x", len(s.Memory), s.Sp, at)
		}
		for i, b := range s.Memory[at-s.Sp:] {
			if b != byte(i*7+i/256) {
				t.Fatalf("byte %d of the pattern is %#x", i, b)
			}
		}
		if path, _ := mappingAt(t, d.pid, s.Ip); path != programs.driver {
			t.Errorf("called from %#x in %q, want the driver", s.Ip, path)
		}
	})
}

func TestStackEndsWithItsMapping(t *testing.T) {
	d := drive(t)
	k := open(t, Options{Stacks: true})
	judge(t, k, d.pid, Watch)
	attach(t, k, d.pid, create)
	var s wire.Sample
	var want uint64
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", d.pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close() //nolint:errcheck // it is only read
	for range 50 {
		d.do("shallow")
		s = gather(t, k, 1)[0]
		_, end := mappingAt(t, d.pid, s.Sp)
		if want = end - s.Sp; uint64(len(s.Memory)) == want {
			break
		}
		// The kernel may have moved or taken away a page; a probe cannot wait for it, but who reads it here does.
		if _, err := memory.ReadAt(make([]byte, want), int64(s.Sp)); err != nil {
			t.Fatal(err)
		}
	}
	if want >= wire.CallStack || uint64(len(s.Memory)) != want {
		t.Errorf("%d bytes of stack, %d are there", len(s.Memory), want)
	}
	if !bytes.HasSuffix(s.Memory, append([]byte(programs.driver), make([]byte, 9)...)) {
		t.Errorf("the stack does not end with the name of the program: %q", s.Memory[max(0, len(s.Memory)-100):])
	}
}

func TestRegistersAreThoseOfTheCaller(t *testing.T) {
	kinds(t, Options{}, func(t *testing.T, k *Kernel) {
		d := drive(t)
		judge(t, k, d.pid, Watch)
		attach(t, k, 0, create)
		d.do("registers")
		s := gather(t, k, 1)[0]
		got := [6]uint64{s.Bx, s.Bp, s.R12, s.R13, s.R14, s.R15}
		if got != [6]uint64{0x11, 0x12, 0x13, 0x14, 0x15, 0x16} {
			t.Errorf("registers %#x", got)
		}
		if len(s.Memory) != 0 || s.Shortened != 0 {
			t.Errorf("a stack without Options.Stacks: %d bytes", len(s.Memory))
		}
	})
}

func TestFullRingLosesCounted(t *testing.T) {
	d := drive(t)
	k := open(t, Options{RingBytes: os.Getpagesize(), Uses: true})
	judge(t, k, d.pid, Watch)
	attach(t, k, 0, create, use)
	d.do("run 2 500")
	for range 3 {
		d.do("use 1")
	}
	calls, uses := k.LostCalls(d.pid)
	all, alluses := k.LostCallsOfAll()
	if uses != 3 || all != calls || alluses != uses {
		t.Errorf("lost %d calls, %d of them uses, of all processes %d and %d; want 3 uses, and the same of all", calls, uses, all, alluses)
	}
	reported := 0
	poll(t, k, func(*wire.Sample) { reported++ }, func() bool { return reported+int(calls) >= 1003 })
	nothing(t, k)
	if reported+int(calls) != 1003 || reported == 0 {
		t.Errorf("%d reported and %d lost of 1003", reported, calls)
	}
	if calls, uses := k.LostCalls(os.Getpid()); calls != 0 || uses != 0 {
		t.Errorf("lost %d and %d of a process that is not watched", calls, uses)
	}
}

// Stacks fill a ring up to the limit. The rest holds calls without stacks, and none is lost before the ring is full.
func TestFullRingLeavesStacksOut(t *testing.T) {
	const (
		threads, rounds = 2, 320 // beside the most stacks there is room for 607 calls without one
		ringBytes       = 1 << 20
		stackBytes      = recordHeader + wire.SizeofCall + wire.CallData + wire.CallStack
		// Each thread may have checked the limit before another one reserved its record.
		least, most = ringBytes / 8 * 7 / stackBytes, ringBytes/8*7/stackBytes + threads
	)
	d := drive(t)
	k := open(t, Options{RingBytes: ringBytes, Stacks: true})
	judge(t, k, d.pid, Watch)
	attach(t, k, 0, create)
	d.do(fmt.Sprintf("run %d %d", threads, rounds))
	if lost, _ := k.LostCallsOfAll(); lost != 0 || k.CallsWithoutStack() != 0 {
		t.Errorf("%d calls lost, and %d counted as shortened before any was read", lost, k.CallsWithoutStack())
	}
	whole, shortened := 0, 0
	for _, s := range gather(t, k, threads*rounds) {
		checkCreate(t, &s)
		switch {
		case s.Shortened != 0 && len(s.Memory) == 0 && s.Ip != 0:
			shortened++
		case s.Shortened == 0 && len(s.Memory) > 0:
			whole++
		}
	}
	if whole < least || whole > most || whole+shortened != threads*rounds {
		t.Errorf("%d calls with stacks, want %d to %d; %d shortened, want the rest of %d", whole, least, most, shortened, threads*rounds)
	}
	if k.CallsWithoutStack() != uint64(shortened) {
		t.Errorf("%d calls counted as shortened, want %d", k.CallsWithoutStack(), shortened)
	}
	d.do("run 1 1")
	if s := gather(t, k, 1)[0]; s.Shortened != 0 || len(s.Memory) == 0 || k.CallsWithoutStack() != uint64(shortened) {
		t.Errorf("after reading, the next call has %d bytes of stack, and %d calls count as shortened", len(s.Memory), k.CallsWithoutStack())
	}
}
