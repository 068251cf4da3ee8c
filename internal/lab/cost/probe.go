package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Probe is what was measured on a device, as a file tells it: one JSON object
//
//	{"device": "…", "driver": "…", "create": {"a_ns": 2100, "b_ns_per_byte": 0.002}, "release": {…}, "touch": {…}, "part": {…}}
//
// of which create and release must be there. Lines that are left out are zero: that cost is not known and not counted.
// Further keys may be there and mean nothing here.
type Probe struct {
	Device  string `json:"device"` // the name that OpenCL gives it
	Driver  string `json:"driver"` // its version
	Create  *Line  `json:"create"`
	Release *Line  `json:"release"`
	Touch   *Line  `json:"touch,omitempty"`
	Part    *Line  `json:"part,omitempty"`
}

// Read reads a probe file. An error says what is wrong with it.
func Read(r io.Reader) (*Probe, error) {
	var p Probe
	decoder := json.NewDecoder(r)
	if err := decoder.Decode(&p); err != nil {
		return nil, fmt.Errorf("no JSON object with the lines of a device: %w", err)
	}
	if err := decoder.Decode(&json.RawMessage{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the first JSON object: keep that of one device")
	}
	for _, l := range []struct {
		name string
		line *Line
		must bool
	}{{"create", p.Create, true}, {"release", p.Release, true}, {"touch", p.Touch, false}, {"part", p.Part, false}} {
		switch {
		case l.line == nil && l.must:
			return nil, fmt.Errorf(`%q is missing: want {"a_ns": NS, "b_ns_per_byte": NS}`, l.name)
		case l.line != nil && !l.line.sane():
			return nil, fmt.Errorf("%q is %g ns + %g ns per byte: want numbers from 0 to %g", l.name, l.line.A, l.line.B, float64(most))
		}
	}
	return &p, nil
}

// most is a year in ns: what takes longer is a mistake.
const most = 365 * 24 * 3600 * 1e9

func (l *Line) sane() bool { return l.A >= 0 && l.A <= most && l.B >= 0 && l.B <= most }

// Costs returns the device that was measured.
func (p *Probe) Costs() Device {
	return Device{Create: value(p.Create), Release: value(p.Release), Touch: value(p.Touch), Part: value(p.Part)}
}

func value(l *Line) Line {
	if l == nil {
		return Line{}
	}
	return *l
}
