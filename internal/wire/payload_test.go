package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func texts(all [][]byte) []string {
	var list []string
	for _, b := range all {
		list = append(list, string(b))
	}
	return list
}

func TestProcessPayload(t *testing.T) {
	for _, command := range [][]string{{"app"}, {"app", "-v", ""}, {"app", "", "x"}} {
		program, arguments := ParseProcess(append(AppendProcess(nil, command), 0))
		if got := append([]string{string(program)}, texts(slices.Collect(arguments))...); !slices.Equal(got, command) {
			t.Errorf("ParseProcess(AppendProcess(%q)) = %q", command, got)
		}
	}
	if n := len(AppendProcess([]byte("kept"), []string{strings.Repeat("x", 2*PayloadMax)})); n != 4+PayloadMax {
		t.Errorf("a long command line takes %d bytes, want %d", n, 4+PayloadMax)
	}
}

func TestPairPayloads(t *testing.T) {
	b, ok := AppendModuleWithBuild(nil, "/lib/a.so", "c0ffee")
	if path, id := ParseModule(b); !ok || string(path) != "/lib/a.so" || string(id) != "c0ffee" {
		t.Errorf("ParseModule(%q) = %q, %q", b, path, id)
	}
	if path, id := ParseModule(AppendModule(nil, "/lib/a.so")); string(path) != "/lib/a.so" || len(id) != 0 {
		t.Errorf("a module without build id: %q, %q", path, id)
	}
	if _, ok := AppendModuleWithBuild(nil, strings.Repeat("x", PayloadMax), "c0ffee"); ok {
		t.Error("a build id behind a path that fills the payload")
	}
	b = appendPair(nil, "GPU", "1.2")
	if name, driver, _ := ParseDevice(b); string(name) != "GPU" || string(driver) != "1.2" {
		t.Errorf("ParseDevice(%q) = %q, %q", b, name, driver)
	}
}

func TestLimitPayload(t *testing.T) {
	name, value := ParseLimit([]byte("policy=slab,max_age=5s,x\x00"))
	policy, limits := ParsePolicyValue(string(value))
	if string(name) != PolicySetting || policy != "slab" || limits != "max_age=5s,x" {
		t.Errorf("%q: %q begins with %q", name, policy, limits)
	}
	if name, value := ParseLimit([]byte("4096")); string(name) != "4096" || value != nil {
		t.Errorf("a trim: %q, %q", name, value)
	}
}

func TestSitePayload(t *testing.T) {
	want := []SiteFrame{
		{Function: "main", File: "a.c", Line: 7, Module: "/bin/app", Offset: 0x10, HasOffset: true},
		{Function: "f", Module: "/bin/app"},
		{},
	}
	var b []byte
	for _, f := range want {
		b = AppendSiteFrame(b, f)
	}
	if got := slices.Collect(ParseSite(b)); !slices.Equal(got, want) {
		t.Errorf("ParseSite(%q) = %+v", b, got)
	}
	hostile := AppendSiteFrame(nil, SiteFrame{Function: "a\tb\nc\x00", Module: "m"})
	if got := slices.Collect(ParseSite(hostile)); len(got) != 1 || got[0].Function != "a b c " {
		t.Errorf("separators in a name: %+v", got)
	}
}

func TestParseArms(t *testing.T) {
	for value, want := range map[string]string{
		"none,request=12":                  "none 12 true",
		"pow2,min_block=64,request=0":      "pow2,min_block=64 0 true",
		"+max_age=1,request=3":             "+max_age=1 3 true",
		"off,request=18446744073709551615": "off 18446744073709551615 true",
		"1,request=5":                      "1 5 true",
		"none":                             "none 0 false",
		"none,request=x":                   "none 0 false",
		"":                                 " 0 false",
	} {
		what, n, ok := ParseArmsSetting(value)
		if got := fmt.Sprint(what, " ", n, " ", ok); got != want {
			t.Errorf("%q is %q, want %q", value, got, want)
		}
	}
}

func FuzzPayloads(f *testing.F) {
	f.Add([]byte("app\x00-v\x00"))
	f.Add([]byte("main\ta.c\t7\tapp+0x10\n"))
	f.Add([]byte("policy=slab,max_age=5s"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		program, arguments := ParseProcess(payload)
		again := []string{string(program)}
		for word := range arguments {
			again = append(again, string(word))
		}
		if got := AppendProcess(nil, again); !bytes.Equal(got, boundPayload(bytes.TrimSuffix(payload, []byte{0}), 0)) {
			t.Errorf("PROCESS %q comes back as %q", payload, got)
		}
		path, id := ParseModule(payload)
		if b, ok := AppendModuleWithBuild(nil, string(path), string(id)); ok {
			if p, i := ParseModule(b); !bytes.Equal(p, path) || !bytes.Equal(i, id) {
				t.Errorf("MODULE %q, %q comes back as %q, %q", path, id, p, i)
			}
		}
		var b []byte
		for _, frame := range FramesOfTag(payload) {
			b = AppendFrame(b, frame)
		}
		if !bytes.Equal(b, payload[:len(b)]) || len(payload)-len(b) >= SizeofFrame {
			t.Errorf("TAG %x comes back as %x", payload, b)
		}
		frames := slices.Collect(ParseSite(payload))
		b = nil
		for _, frame := range frames {
			b = AppendSiteFrame(b, frame)
		}
		if again := slices.Collect(ParseSite(b)); len(again) != len(frames) {
			t.Errorf("SITE %q has %d frames, then %d", payload, len(frames), len(again))
		}
		if policy, _ := ParsePolicyValue(string(payload)); strings.Contains(policy, ",") {
			t.Errorf("LIMIT %q has a policy %q", payload, policy)
		}
		if what, n, ok := ParseArmsSetting(string(payload)); ok && !strings.HasSuffix(string(payload), strconv.FormatUint(n, 10)) && !strings.HasPrefix(string(payload), what) {
			t.Errorf("LIMIT %q has an experiment %q and %d", payload, what, n)
		}
		ParseLimit(payload)
		ParseDevice(payload)
		TextBeforeNUL(payload)
	})
}

// TestFieldsShareNoBits packs and reads back every column of every kind, alone: no two of a kind share bits, except dependent
// ones, where only one is set.
func TestFieldsShareNoBits(t *testing.T) {
	for kind, view := range allViews {
		fields := reflect.New(reflect.TypeOf(view(&Event{}))).Elem()
		for i := range fields.NumField() {
			fields.SetZero()
			fill(fields.Field(i))
			e := eventOf(fields.Interface())
			if e.Kind != kind {
				t.Fatalf("%T makes an event of kind %s, want %s", fields.Interface(), e.Kind, kind)
			}
			got := reflect.ValueOf(view(&e))
			for j := range fields.NumField() {
				if name := fields.Type().Field(j).Name; j != i && !got.Field(j).IsZero() && !dependent[name] {
					t.Errorf("%s: setting %s sets %s", kind, fields.Type().Field(i).Name, name)
				}
			}
			name := fields.Type().Field(i).Name
			if !dependent[name] && !reflect.DeepEqual(got.Field(i).Interface(), fields.Field(i).Interface()) {
				t.Errorf("%s: %s = %v, want %v", kind, name, got.Field(i), fields.Field(i))
			}
		}
	}
}

// dependent are the columns that hold only for some values of another one.
var dependent = map[string]bool{
	"Granted": true, "OriginNumber": true, "Block": true, "Parent": true, "Kernel": true, "Offset": true, "Decision": true,
	"Bytes": true, "Status": true, "Shape": true, "OffPage": true, "Arm": true,
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(2.5)
	case reflect.Int16:
		v.SetInt(-3)
	default:
		v.SetUint(5)
	}
}

func eventOf(fields any) Event {
	v := reflect.ValueOf(fields)
	if m := v.MethodByName("Event"); m.IsValid() {
		return m.Call(nil)[0].Interface().(Event)
	}
	return v.MethodByName("Record").Call([]reflect.Value{reflect.ValueOf([]byte(nil))})[0].Interface().(Record).Event
}

var allViews = map[Kind]func(*Event) any{
	KindProcess: func(e *Event) any { return e.AsProcess().Fields() },
	KindThread:  func(e *Event) any { return e.AsThread().Fields() },
	KindModule:  func(e *Event) any { return e.AsModule().Fields() },
	KindTag:     func(e *Event) any { return e.AsTag().Fields() },
	KindSite:    func(e *Event) any { return e.AsSite().Fields() },
	KindDevice:  func(e *Event) any { return e.AsDevice().Fields() },
	KindContext: func(e *Event) any { return e.AsContext().Fields() },
	KindQueue:   func(e *Event) any { return e.AsQueue().Fields() },
	KindKernel:  func(e *Event) any { return e.AsKernel().Fields() },
	KindCreate:  func(e *Event) any { return e.AsCreate().Fields() },
	KindRetain:  func(e *Event) any { return e.AsRetain().Fields() },
	KindRelease: func(e *Event) any { return e.AsRelease().Fields() },
	KindUse:     func(e *Event) any { return e.AsUse().Fields() },
	KindSync:    func(e *Event) any { return e.AsSync().Fields() },
	KindCooled:  func(e *Event) any { return e.AsCooled().Fields() },
	KindEvict:   func(e *Event) any { return e.AsEvict().Fields() },
	KindLimit:   func(e *Event) any { return e.AsLimit().Fields() },
	KindDiag:    func(e *Event) any { return e.AsDiag().Fields() },
	KindExit:    func(e *Event) any { return e.AsExit().Fields() },
	KindLost:    func(e *Event) any { return e.AsLost().Fields() },
	KindSlab:    func(e *Event) any { return e.AsSlab().Fields() },
	KindGauge:   func(e *Event) any { return e.AsGauge().Fields() },
	KindOrder:   func(e *Event) any { return e.AsOrder().Fields() },
	KindAwait:   func(e *Event) any { return e.AsAwait().Fields() },
	KindMachine: func(e *Event) any { return e.AsMachine().Fields() },
	KindSpill:   func(e *Event) any { return e.AsSpill().Fields() },
}
