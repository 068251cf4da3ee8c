package monitor

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/google/pprof/profile"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
	"codeberg.org/gpumemtop/gpumemtop/internal/units"
)

// profileMax bounds the duration of a difference.
const profileMax = 60 * time.Second

// The values of a sample.
const (
	allocObjects = iota
	inUseObjects
	inUseSpace
	peakSpace
	valueTypes
)

// serveProfile writes memory by call site for pprof: at=now, or at=peak for each call site's own peak. With seconds=N it
// writes the change within that time.
func (s *Server) serveProfile(w http.ResponseWriter, r *http.Request) {
	at, after := r.FormValue("at"), r.FormValue("seconds")
	if at != "" && at != "now" && at != "peak" {
		http.Error(w, "at="+strconv.Quote(at)+": want now or peak", http.StatusBadRequest)
		return
	}
	var before *stats.Snapshot
	if after != "" {
		seconds, err := strconv.ParseFloat(after, 64)
		if err != nil || !(seconds > 0 && seconds <= profileMax.Seconds()) {
			http.Error(w, fmt.Sprintf("seconds=%q: want a number up to %v", after, profileMax.Seconds()), http.StatusBadRequest)
			return
		}
		before = s.source()
		select {
		case <-time.After(time.Duration(seconds * 1e9)):
		case <-r.Context().Done():
			return
		}
	}
	var b bytes.Buffer
	err := profileOf(s.source(), before, at == "peak").Write(&b)
	w.Header().Set("Content-Disposition", `attachment; filename="opencl.pb.gz"`)
	writeReply(w, "application/octet-stream", b.Bytes(), err)
}

// WriteProfile writes memory in use at a snapshot for go tool pprof.
func WriteProfile(w io.Writer, s *stats.Snapshot) error { return profileOf(s, nil, false).Write(w) }

// profileOf makes a profile of a snapshot, minus an earlier one if that is not nil.
func profileOf(s, before *stats.Snapshot, peak bool) *profile.Profile {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{
			allocObjects: {Type: "alloc_objects", Unit: "count"}, inUseObjects: {Type: "inuse_objects", Unit: "count"},
			inUseSpace: {Type: "inuse_space", Unit: "bytes"}, peakSpace: {Type: "peak_space", Unit: "bytes"},
		},
		DefaultSampleType: "inuse_space", TimeNanos: time.Now().UnixNano(),
	}
	if peak {
		p.DefaultSampleType = "peak_space"
	}
	earlier := map[uint32]*stats.Tag{}
	if before != nil {
		p.DurationNanos = int64(s.Time - min(before.Time, s.Time))
		for i := range before.Tags {
			earlier[before.Tags[i].ID] = &before.Tags[i]
		}
	}
	places := map[string]*profile.Location{}
	for i := range s.Tags {
		t := &s.Tags[i]
		values := valuesOfSite(t)
		if last := earlier[t.ID]; last != nil {
			for k, v := range valuesOfSite(last) {
				values[k] -= v
			}
		}
		if values == [valueTypes]int64{} {
			continue
		}
		p.Sample = append(p.Sample, &profile.Sample{Value: values[:], Location: locationsOfSite(p, places, t)})
	}
	return p
}

func valuesOfSite(t *stats.Tag) [valueTypes]int64 {
	return [valueTypes]int64{
		allocObjects: int64(t.Creates), inUseObjects: int64(t.Live), inUseSpace: int64(t.InUse), peakSpace: int64(t.PeakInUse),
	}
}

// locationsOfSite returns the locations of a call site, innermost first.
func locationsOfSite(p *profile.Profile, places map[string]*profile.Location, t *stats.Tag) []*profile.Location {
	names := t.Stack
	if len(names) == 0 {
		names = []string{t.Name}
	}
	stack := make([]*profile.Location, len(names))
	for i, name := range names {
		name = units.Clean(name)
		if places[name] == nil {
			id := uint64(len(p.Location) + 1)
			f := &profile.Function{ID: id, Name: name}
			p.Function = append(p.Function, f)
			places[name] = &profile.Location{ID: id, Line: []profile.Line{{Function: f}}}
			p.Location = append(p.Location, places[name])
		}
		stack[i] = places[name]
	}
	return stack
}
