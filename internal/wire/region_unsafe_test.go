package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"
)

// memory returns a region as a target would make it, aligned to a cache line.
func memory(t testing.TB) []byte {
	t.Helper()
	raw := make([]byte, RegionSize+64)
	skip := (64 - int(uintptr(unsafe.Pointer(&raw[0]))%64)) % 64
	mem := raw[skip : skip+RegionSize]
	head := (*rawRegion)(unsafe.Pointer(&mem[0]))
	*head = rawRegion{Magic: magic, Version: Version, Rings: rings, Ringevents: ringEvents, Pid: 42, Started: 7, Used: rings}
	return mem
}

// producer writes one ring as the shim does.
type producer struct{ ring *rawRing }

func (p producer) write(e Event, payload []byte) {
	if e.Kind.HasPayload() {
		e.Size = uint64(len(payload))
	}
	p.ring.Events[p.ring.Head%ringEvents] = e
	p.ring.Head++
	for len(payload) > 0 {
		slot := (*[SizeofEvent]byte)(unsafe.Pointer(&p.ring.Events[p.ring.Head%ringEvents]))
		payload = payload[copy(slot[:], payload):]
		p.ring.Head++
	}
}

func region(t testing.TB) (*Region, producer) {
	t.Helper()
	mem := memory(t)
	r, err := NewRegion(mem)
	if err != nil {
		t.Fatal(err)
	}
	return r, producer{(*rawRing)(unsafe.Pointer(&mem[ringsOffset+3*sizeofRing]))}
}

// TestTimesOfAnotherClockAreTranslated: another clock is recognised, and all times are translated.
func TestTimesOfAnotherClockAreTranslated(t *testing.T) {
	const second = 1_000_000_000
	for _, c := range []struct{ shift, want int64 }{
		{0, 1000}, {second / 2, 1000}, {100_000 * second, 1000 - 100_000*second}, {-50 * second, 1000 + 50*second},
	} {
		r, p := region(t)
		r.head.Started, r.head.Realtime = uint64(100_000*second+c.shift), 2_000_000*second
		r.SetClockShift(100_001*second, 2_000_001*second)
		p.write(AwaitFields{Time: uint64(1000 + 200_000*second), AwaitedTime: uint64(900 + 200_000*second)}.Event(), nil)
		var got Record
		if !r.Cursor(3).Next(&got, 1<<63) {
			t.Fatal("no event")
		}
		if await := got.AsAwait(); int64(await.Time()) != c.want+200_000*second || int64(await.AwaitedTime()) != c.want+200_000*second-100 {
			t.Errorf("shift %d: times %d and %d", c.shift, await.Time(), await.AwaitedTime())
		}
	}
}

func TestMailboxCarriesMessages(t *testing.T) {
	r, _ := region(t)
	box := NewMailbox(unsafe.Pointer(r.head))
	if _, ok := box.NextMessage(); ok {
		t.Error("a message in an empty mailbox")
	}
	for sequence := uint64(1); sequence <= 3*controls; sequence++ {
		message, err := Control{Sequence: sequence, Text: "trim 0"}.Encode()
		if err != nil || !r.PostMessage(message) {
			t.Fatalf("message %d not posted: %v", sequence, err)
		}
		if got, ok := box.NextMessage(); !ok || got.Sequence != sequence || got.Text != "trim 0" {
			t.Fatalf("got %+v (%v), want message %d", got, ok, sequence)
		}
	}
	message := make([]byte, SizeofControl)
	for range controls {
		if !r.PostMessage(message) {
			t.Fatal("no room in an empty mailbox")
		}
	}
	if r.PostMessage(message) {
		t.Error("posted into a full mailbox")
	}
	if r.head.Taken += 1000; r.PostMessage(message) {
		t.Error("posted into a mailbox that makes no sense")
	}
}

func TestRingCarriesEventsAndPayloads(t *testing.T) {
	r, p := region(t)
	path := bytes.Repeat([]byte("/usr/lib/"), 30)
	p.write(Event{Kind: KindThread, Object: 99}, nil)
	p.write(Event{Kind: KindModule, Time: 5, Object: 1}, path)
	p.write(Event{Kind: KindCreate, Time: 6, Object: 2, Size: 4096}, nil)
	c := r.Cursor(3)
	var rec Record
	if !c.Next(&rec, 10) || rec.Kind != KindModule || !bytes.Equal(rec.Payload, path) || rec.Thread != 99 {
		t.Fatalf("first record %+v", rec)
	}
	if c.Next(&rec, 5) {
		t.Fatal("an event came out before its time")
	}
	if !c.Next(&rec, 6) || rec.Kind != KindCreate || rec.Size != 4096 || len(rec.Payload) != 0 {
		t.Fatalf("second record %+v", rec)
	}
	if c.Next(&rec, 10) {
		t.Fatal("a third record")
	}
	c.Release()
	if p.ring.Tail != p.ring.Head {
		t.Errorf("tail %d, head %d", p.ring.Tail, p.ring.Head)
	}
}

// TestRingGoesRound writes several times the ring's length, with payloads across its end.
func TestRingGoesRound(t *testing.T) {
	r, p := region(t)
	c := r.Cursor(3)
	payload := make([]byte, 1000)
	for i := range uint64(3 * ringEvents / 8) {
		binary.LittleEndian.PutUint64(payload, i)
		p.write(Event{Kind: KindDiag, Time: i, Object: i}, payload[:8+i%900])
		var rec Record
		if !c.Next(&rec, i) || rec.Object != i || binary.LittleEndian.Uint64(rec.Payload) != i || len(rec.Payload) != int(8+i%900) {
			t.Fatalf("record %d came out as %+v", i, rec.Event)
		}
		c.Release()
	}
}

func TestHostileRings(t *testing.T) {
	for name, spoil := range map[string]func(*rawRing){
		"head far ahead":  func(r *rawRing) { r.Head = ringEvents + 1 },
		"head goes back":  func(r *rawRing) { r.Head = ^uint64(0) },
		"payload missing": func(r *rawRing) { r.Events[0] = Event{Kind: KindDiag, Size: 4000}; r.Head = 2 },
		"payload length":  func(r *rawRing) { r.Events[0] = Event{Kind: KindDiag, Size: ^uint64(0)}; r.Head = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			r, p := region(t)
			spoil(p.ring)
			var rec Record
			if r.Cursor(3).Next(&rec, 10) || !r.Cursor(3).IsBroken() {
				t.Errorf("read %+v", rec.Event)
			}
			if r.Cursor(3).Next(&rec, 10) {
				t.Error("a broken ring was read again")
			}
		})
	}
}

func TestNewRegionChecks(t *testing.T) {
	good := memory(t)
	if _, err := NewRegion(good[:RegionSize-64]); err == nil {
		t.Error("a short region was accepted")
	}
	if _, err := NewRegion(append(good[8:], make([]byte, 8)...)); err == nil {
		t.Error("an unaligned region, or one without magic, was accepted")
	}
	(*rawRegion)(unsafe.Pointer(&good[0])).Version++
	if _, err := NewRegion(good); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
}

func TestLostSumsAllRings(t *testing.T) {
	r, p := region(t)
	p.ring.Lost, p.ring.Lostuses, p.ring.Waits = 5, 3, 1
	r.Cursor(7).ring.Lost = 2
	if lost, uses, waits := r.LostAndWaitCounts(); lost != 7 || uses != 3 || waits != 1 {
		t.Errorf("lost %d, uses %d, waits %d", lost, uses, waits)
	}
}

func TestFrames(t *testing.T) {
	payload := binary.LittleEndian.AppendUint64(nil, 1)
	payload = binary.LittleEndian.AppendUint64(payload, 0x14a9)
	if got := FramesOfTag(append(payload, 1, 2, 3)); !slices.Equal(got, []Frame{{1, 0x14a9}}) {
		t.Errorf("frames %v", got)
	}
}

func TestMessages(t *testing.T) {
	b, err := Control{Sequence: 7, Text: "limit max_cached_bytes=1"}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeControl(b); err != nil || got.Sequence != 7 || got.Text != "limit max_cached_bytes=1" {
		t.Errorf("control %+v, %v", got, err)
	}
	if _, err := (Control{Text: string(make([]byte, 300))}).Encode(); err == nil {
		t.Error("a message that does not fit was encoded")
	}
	r, _ := region(t)
	if r.SetUsesWanted(true); r.head.Uses != 1 {
		t.Error("the target does not see that uses are wanted")
	}
	config := Config{Tags: TagsStack, StackDepth: 99, Wait: time.Second, Uses: UsesAlways, Pooling: true, Policy: "futhark", Limits: "a=1"}
	b, err = config.Encode()
	if err != nil {
		t.Fatal(err)
	}
	raw := (*rawConfig)(unsafe.Pointer(&b[0]))
	if raw.Magic != magic || raw.Stackdepth != StackMax || raw.Waitms != 1000 || raw.Pooling != 1 || string(raw.Policy[:7]) != "futhark" {
		t.Errorf("config %+v", raw)
	}
	if _, err := (Config{Policy: string(bytes.Repeat([]byte("x"), 64))}).Encode(); err == nil {
		t.Error("a policy name that does not fit was encoded")
	}
}

func FuzzDecodeHello(f *testing.F) {
	raw := rawHello{Magic: magic, Version: Version, Pid: 1, Ppid: 2, Arguments: 9}
	copy(raw.Text[:], "app\x00-v\x001\x00")
	f.Add((*[SizeofHello]byte)(unsafe.Pointer(&raw))[:])
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHello(b)
		if err != nil && (h.PID != 0 || h.Arguments != nil) {
			t.Fatalf("%+v and %v", h, err)
		}
		if err == nil && b[0] == 'x' {
			t.Fatal("a message without magic was accepted")
		}
	})
}

func FuzzDecodeControl(f *testing.F) {
	b, err := (Control{Sequence: 7, Text: "max_age=2s"}).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeControl(b)
		if err != nil || len(c.Text) > ControlMax { // text without a zero at its end is read, and never written
			return
		}
		again, err := c.Encode()
		if back, _ := DecodeControl(again); err != nil || back != c {
			t.Fatalf("%+v became %+v, %v", c, back, err)
		}
	})
}

func FuzzDecodeSample(f *testing.F) {
	f.Add(AppendSample(nil, &Sample{Copies: make([]byte, CallData), Memory: []byte("stack")}))
	f.Add(AppendSample(nil, &Sample{Memory: []byte("stack")}))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Sample
		if DecodeSample(b, &s) == nil && !bytes.HasPrefix(b, AppendSample(nil, &s)) {
			t.Fatalf("%+v is not what it was read from", s)
		}
	})
}

func FuzzCursor(f *testing.F) {
	f.Add(uint64(3), []byte{0, 3, 0, 1, 0, 10})
	f.Fuzz(func(t *testing.T, head uint64, events []byte) {
		r, p := region(t)
		flat := unsafe.Slice((*byte)(unsafe.Pointer(&p.ring.Events[0])), len(p.ring.Events)*SizeofEvent)
		copy(flat, events)
		p.ring.Head = head
		var rec Record
		for n := 0; r.Cursor(3).Next(&rec, ^uint64(0)); n++ {
			if n > ringEvents {
				t.Fatal("more events than the ring holds")
			}
		}
	})
}

// The layouts are checked by the C compiler; this checks that Go sees the same.
func TestGoSeesTheLayoutOfC(t *testing.T) {
	if unsafe.Sizeof(Event{}) != SizeofEvent || unsafe.Sizeof(Frame{}) != SizeofFrame || unsafe.Sizeof(rawRing{}) != sizeofRing ||
		unsafe.Sizeof(rawHello{}) != SizeofHello || unsafe.Sizeof(rawControl{}) != SizeofControl || unsafe.Sizeof(rawConfig{}) != SizeofConfig ||
		unsafe.Sizeof(rawRegion{}) != sizeofRegion {
		t.Error("a layout differs between C and Go")
	}
}

func TestWords(t *testing.T) {
	if MissTooWasteful.String() != "too wasteful" || KindCreate.String() != "create" || Kind(999).String() != "999" {
		t.Error("names of enumerations are wrong")
	}
}
