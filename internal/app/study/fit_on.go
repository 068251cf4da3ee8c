package study

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"codeberg.org/gpumemtop/gpumemtop/internal/app/console"
	"codeberg.org/gpumemtop/gpumemtop/internal/app/files"
	"codeberg.org/gpumemtop/gpumemtop/internal/doctor"
	"codeberg.org/gpumemtop/gpumemtop/internal/portable"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// ListDevices is the value of --on that lists what is built in.
const ListDevices = "list"

// Held are recordings held against a device. Scripts rely on its JSON keys.
type Held struct {
	Device     *portable.Profile `json:"device"`
	Recordings []OnDevice        `json:"recordings"`
}

// OnDevice is the result for one recording.
type OnDevice struct {
	File string `json:"file"`
	*portable.Result
}

// FitOnDevice holds recordings against a device that need not be here, and writes what it finds. The error carries
// console.StatusUnmet if one of them would not run there.
func FitOnDevice(w io.Writer, device, format string, paths []string) error {
	if format != "text" && format != "json" {
		return fmt.Errorf("unknown format %q: want text or json", format)
	}
	if device == ListDevices {
		return writeBuiltInDevices(w, format, paths)
	}
	profile, err := findDeviceProfile(device)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return errors.New("no recording to hold against the device: gpumemtop fit --on DEVICE FILE")
	}
	held, unmet := Held{Device: profile}, false
	for _, path := range paths {
		err := files.ReadRecording(path, func(t *files.Tracked) error {
			result, err := portable.CompareWithProfile(t, t.Header().ClockNS, profile)
			if err != nil {
				return err
			}
			unmet = unmet || result.Verdict == portable.Fails
			held.Recordings = append(held.Recordings, OnDevice{path, result})
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := held.writeHeld(w, format); err != nil {
		return err
	}
	if unmet {
		return console.NewExit(console.StatusUnmet, nil)
	}
	return nil
}

func (h *Held) writeHeld(w io.Writer, format string) error {
	if format == "json" {
		return console.WriteJSON(w, h)
	}
	var b strings.Builder
	for i := range h.Recordings {
		fmt.Fprintf(&b, "%s on %s", units.Clean(h.Recordings[i].File), h.Recordings[i].Text())
	}
	return console.WriteText(w, b.String())
}

// writeBuiltInDevices lists the devices that are built in.
func writeBuiltInDevices(w io.Writer, format string, paths []string) error {
	if len(paths) > 0 {
		return fmt.Errorf("--on %s only lists devices: leave out %q", ListDevices, paths[0])
	}
	if format == "text" {
		return console.WriteText(w, portable.ProfileTable(console.WidthWithin(w, 0)))
	}
	all := map[string]*portable.Profile{}
	for _, name := range portable.ProfileNames() {
		all[name], _ = portable.BuiltInProfile(name)
	}
	return console.WriteJSON(w, all)
}

// findDeviceProfile finds a profile that is built in, or reads a file.
func findDeviceProfile(device string) (*portable.Profile, error) {
	if p, ok := portable.BuiltInProfile(device); ok {
		return p, nil
	}
	text, err := files.ReadBoundedFile(device, portable.ProfileMax)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(device, "/.") {
		near := "--on list shows them"
		if name := doctor.NearestWord(device, portable.ProfileNames()); name != "" {
			near = "did you mean " + name + "?"
		}
		return nil, fmt.Errorf("--on: no device %q is built in, and there is no such file: %s", device, near)
	}
	if err != nil {
		return nil, fmt.Errorf("--on: %w", err)
	}
	p, err := portable.ParseProfile(string(text))
	var unknown *portable.UnknownKey
	switch {
	case errors.As(err, &unknown):
		if near := doctor.NearestWord(unknown.Key, portable.ProfileKeys()); near != "" {
			return nil, fmt.Errorf("--on: %s: %w: did you mean %s?", device, err, near)
		}
		return nil, fmt.Errorf("--on: %s: %w: want one of %s", device, err, strings.Join(portable.ProfileKeys(), ", "))
	case err != nil:
		return nil, fmt.Errorf("--on: %s: %w", device, err)
	}
	return p, nil
}
