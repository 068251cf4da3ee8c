package devicebench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/cost"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// ParseResult reads what WriteJSON has written. An error says what is wrong with it.
func ParseResult(text []byte) (*Result, error) {
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("not what gpumemtop probe --format json writes: %w", err)
	}
	if len(r.Devices) == 0 {
		return nil, errors.New("no devices in it: want what gpumemtop probe --format json writes")
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		for _, f := range []struct {
			name string
			line cost.Line
		}{{"create", d.Create.Line}, {"touch", d.Touch.Line}, {"release", d.Release.Line}, {"sub-buffer", d.subBufferCost()}} {
			if err := f.line.CheckCosts(); err != nil {
				return nil, fmt.Errorf("the %s cost of device %d is wrong: %w", f.name, d.Number, err)
			}
		}
	}
	return &r, nil
}

// Device returns the one device that is meant, by its number, or by a part of its name in any case; "": there is only one.
func (r *Result) Device(which string) (*Device, error) {
	chosen, err := chooseDevices(r.Devices, which, "")
	switch {
	case err != nil:
		return nil, err
	case len(chosen) > 1:
		return nil, fmt.Errorf("there are several devices: choose one with --device: %s", deviceListText(chosen))
	}
	d := &chosen[0]
	if d.Create.Line == (cost.Line{}) {
		return nil, fmt.Errorf("device %d was not measured: %s", d.Number, cmp.Or(units.Clean(d.Error), "there is no create cost"))
	}
	return d, nil
}

// SteadyCosts returns what its driver takes in the steady state, in which creates come after releases. What memory costs that
// is new to the process (New) is not in it: a line knows sizes, not what was there before.
func (d *Device) SteadyCosts() cost.Device {
	costs := cost.Device{
		Create: d.Create.Line, Touch: d.Touch.Line, Release: d.Release.Line, Part: d.subBufferCost(),
	}
	costs.AssumePartCost()
	return costs
}

func (d *Device) subBufferCost() cost.Line { return cost.Line{A: d.SubCreate + d.SubRelease} }

// chooseDevices returns the devices that are asked for, by number or by a part of their names, and of platforms with a part in
// theirs. "": all.
func chooseDevices(devices []Device, device, platform string) ([]Device, error) {
	number, err := strconv.Atoi(device)
	numbered := err == nil && device != ""
	has := func(name, part string) bool { return strings.Contains(strings.ToLower(name), strings.ToLower(part)) }
	var chosen []Device
	for i := range devices {
		d := &devices[i]
		if !has(d.Platform, platform) || numbered && d.Number != number || !numbered && !has(d.Device, device) {
			continue
		}
		chosen = append(chosen, *d)
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no such device: there are %s", deviceListText(devices))
	}
	return chosen, nil
}

// deviceListText lists devices as --device takes them.
func deviceListText(devices []Device) string {
	var list []string
	for i := range devices {
		d := &devices[i]
		list = append(list, fmt.Sprintf("%d: %s (%s)", d.Number, units.Clean(d.Device), units.Clean(d.Platform)))
	}
	return strings.Join(list, ", ")
}
