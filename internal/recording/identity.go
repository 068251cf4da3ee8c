package recording

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"

	"codeberg.org/gpumemtop/gpumemtop/internal/wire"
)

// Identity is how a fleet knows a run: by its user, job and state of the sources. Unknown fields are empty.
type Identity struct {
	User string `json:"user,omitempty"`
	Boot string `json:"boot,omitempty"` // id of the host's
	wire.Place
	Revision string            `json:"revision,omitempty"` // of the program's sources, as CI calls it
	Labels   map[string]string `json:"labels,omitempty"`   // that the user chose
}

// SharedWith returns what two runs share.
func (a Identity) SharedWith(b Identity) Identity {
	same := func(x, y string) string {
		if x == y {
			return x
		}
		return ""
	}
	labels := maps.Clone(a.Labels)
	maps.DeleteFunc(labels, func(name, value string) bool { v, ok := b.Labels[name]; return !ok || v != value })
	if len(labels) == 0 {
		labels = nil
	}
	return Identity{same(a.User, b.User), same(a.Boot, b.Boot), a.Place.CommonPlace(b.Place), same(a.Revision, b.Revision), labels}
}

// originOf returns the recording that a process was recorded in.
func (h *Header) originOf(process uint32) Origin {
	for i := range h.Merged {
		if o := &h.Merged[i]; process >= o.First && process <= o.Last {
			return *o
		}
	}
	return Origin{
		Host: h.Host, Program: h.Program, Arguments: h.Arguments, Policy: h.Policy, Created: h.Created, First: 1,
		DeviceMemory: h.DeviceMemory, Identity: h.Identity,
	}
}

// IdentityOf returns the identity of the run that a process belongs to.
func (h *Header) IdentityOf(process uint32) Identity { return h.originOf(process).Identity }

// HostOf returns the host that a process ran on.
func (h *Header) HostOf(process uint32) string { return h.originOf(process).Host }

// RecordingIDOf returns the identity of the recording that a process was recorded in, and the number that it had there. It does not change
// when recordings are merged or when a part is taken, and it differs between any two recordings.
func (h *Header) RecordingIDOf(process uint32) (id string, number uint32) {
	origin := h.originOf(process)
	if process > 0 { // else it is no process's
		number = process - origin.First + 1
	}
	words := append([]string{origin.Host, origin.Program, origin.Policy}, origin.Arguments...)
	var b []byte
	for _, word := range words {
		b = binary.AppendUvarint(b, uint64(len(word)))
		b = append(b, word...)
	}
	b = origin.Created.UTC().AppendFormat(b, "2006-01-02T15:04:05.999999999")
	if origin.Created.IsZero() {
		b = binary.AppendUvarint(b, h.ClockNS) // all there is
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16]), number
}
