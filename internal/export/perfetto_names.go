package export

import (
	"encoding/json"
	"path"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"codeberg.org/gpumemtop/gpumemtop/internal/callsite"
)

// names are what a trace defines once and then refers to by number: texts, call stacks and tracks. Each is defined in a packet
// of its own before the first event that needs it.
type names struct {
	define func(field protowire.Number, message []byte) // writes a packet

	titles, keys, categories, functions, modules, files, mappings texts

	frames map[callsite.Frame]uint64
	stacks uint64

	latest                  place // the place whose track is latestTrack
	tracks                  map[trackKey]*track
	lanes                   map[laneKey]*lanes
	lives                   map[lifeKey]life
	latestTrack, tracksMade uint64
	threaded                bool // a thread has got the track firstThread
}

// texts has the numbers of texts of one kind.
type texts map[string]uint64

// trackKey identifies the track of a thread, process or pool, or of a named counter.
type trackKey struct {
	pid, tid  uint64
	kind      placeKind
	name, key string
}

type track struct {
	id      uint64
	last    uint64 // value of a counter
	written bool
}

// laneKey identifies lifetimes of one name.
type laneKey struct {
	pid      uint64
	category category
	name     string
}

// lanes has the tracks of one name, each with one lifetime at a time. Free ones are reused, the latest first.
type lanes struct {
	name string
	free []freeLane
}

type freeLane struct{ track, since uint64 }

// lifeKey identifies a lifetime.
type lifeKey struct {
	pid, id  uint64
	category category
}

type life struct {
	group *lanes
	track uint64
}

func newNames(define func(protowire.Number, []byte)) names {
	return names{
		define: define,
		titles: texts{}, keys: texts{}, categories: texts{}, functions: texts{}, modules: texts{}, files: texts{}, mappings: texts{},
		frames: map[callsite.Frame]uint64{}, tracks: map[trackKey]*track{}, lanes: map[laneKey]*lanes{}, lives: map[lifeKey]life{},
	}
}

// unquote returns the text of a JSON string, which a colon may follow, and other JSON unchanged.
func unquote(quoted string) string {
	var text string
	if json.Unmarshal([]byte(strings.TrimSuffix(quoted, ":")), &text) != nil {
		return quoted
	}
	return text
}

// defineEntry defines an entry, whose message has its number in field 1.
func (n *names) defineEntry(field protowire.Number, id uint64, rest []byte) {
	entry := append(appendNumber(nil, internedID, id), rest...)
	n.define(packetInterned, appendBytes(nil, field, entry))
}

// numberOfText returns the number of a text, and defines it the first time. said makes the text from its key.
func (n *names) numberOfText(of texts, field protowire.Number, key string, said func(string) string) uint64 {
	id, known := of[key]
	if !known {
		id = uint64(len(of)) + 1
		of[key] = id
		n.defineEntry(field, id, appendBytes(nil, internedText, said(key)))
	}
	return id
}

func sameText(text string) string { return text }

// titleNumber returns the number of an event's name.
func (n *names) titleNumber(quoted string) uint64 {
	return n.numberOfText(n.titles, internedNames, quoted, unquote)
}

func (n *names) keyNumber(quoted string) uint64 {
	return n.numberOfText(n.keys, internedKeys, quoted, unquote)
}

func (n *names) categoryNumber(text string) uint64 {
	return n.numberOfText(n.categories, internedCategories, text, sameText)
}

// callstackNumber defines a call stack, innermost frame first.
func (n *names) callstackNumber(frames []callsite.Frame) uint64 {
	var stack []byte
	for i := range frames { // Perfetto has the outermost first
		stack = appendNumber(stack, stackFrames, n.frameNumber(&frames[len(frames)-1-i]))
	}
	n.stacks++
	n.defineEntry(internedStacks, n.stacks, stack)
	return n.stacks
}

func (n *names) frameNumber(f *callsite.Frame) uint64 {
	id, known := n.frames[*f]
	if known {
		return id
	}
	function := f.Function
	if function == "" {
		function = f.ShortText()
	}
	rest := appendNumber(nil, frameFunction, n.numberOfText(n.functions, internedFunctions, function, sameText))
	if f.Module != "" {
		rest = appendNumber(appendNumber(rest, frameMapping, n.mappingNumber(f.Module)), frameOffset, f.Offset)
	}
	if f.File != "" {
		rest = appendNumber(rest, frameFile, n.numberOfText(n.files, internedFiles, f.File, sameText))
	}
	if f.Line > 0 {
		rest = appendNumber(rest, frameLine, uint64(f.Line))
	}
	id = uint64(len(n.frames)) + 1
	n.frames[*f] = id
	n.defineEntry(internedFrames, id, rest)
	return id
}

func (n *names) mappingNumber(module string) uint64 {
	id, known := n.mappings[module]
	if !known {
		var parts []byte
		for part := range strings.SplitSeq(strings.Trim(path.Clean("/"+module), "/"), "/") {
			parts = appendNumber(parts, mappingPath, n.numberOfText(n.modules, internedModules, part, sameText))
		}
		id = uint64(len(n.mappings)) + 1
		n.mappings[module] = id
		n.defineEntry(internedMappings, id, parts)
	}
	return id
}

// describeTrack defines a track, or gives it another name.
func (n *names) describeTrack(key trackKey, rest func(t *track) []byte) *track {
	t := n.tracks[key]
	if t == nil {
		t = &track{id: firstThread}
		if thread := key.kind == onThread && key.name == ""; !thread || n.threaded {
			t.id = n.newTrackID()
		} else {
			n.threaded = true
		}
		n.tracks[key] = t
	}
	n.define(packetTrack, append(appendNumber(nil, trackID, t.id), rest(t)...))
	return t
}

// firstThread is the track of the thread that is named first; readers put events without a track there.
const firstThread = 1

func (n *names) newTrackID() uint64 {
	n.tracksMade++
	return firstThread + n.tracksMade
}

func (n *names) nameProcess(name string, at *place) {
	process := appendBytes(appendNumber(nil, processPID, at.pid), processName, unquote(name))
	n.describeTrack(trackKey{pid: at.pid, kind: onProcess}, func(*track) []byte { return appendBytes(nil, trackProcess, process) })
}

func (n *names) nameThread(name string, at *place) {
	thread := appendNumber(appendNumber(nil, threadPID, at.pid), threadTID, at.tid)
	if name != "" {
		thread = appendBytes(thread, threadName, unquote(name))
	}
	n.describeTrack(trackKey{pid: at.pid, tid: at.tid}, func(*track) []byte { return appendBytes(nil, trackThread, thread) })
}

// childTrackFields returns the fields of a named track below that of its process.
func (n *names) childTrackFields(pid uint64, name string) []byte {
	return appendBytes(appendNumber(nil, trackParent, n.trackOfPlace(&place{pid: pid, kind: onProcess})), trackName, name)
}

func (n *names) trackOfPlace(at *place) uint64 {
	if at.pid == n.latest.pid && at.tid == n.latest.tid && at.kind == n.latest.kind && n.latestTrack > 0 {
		return n.latestTrack
	}
	key := trackKey{pid: at.pid, tid: at.tid, kind: at.kind}
	if at.kind != onThread {
		key.tid = 0
	}
	t := n.tracks[key]
	if t == nil {
		switch at.kind {
		case onThread:
			n.nameThread("", at)
		case onProcess:
			n.nameProcess(`""`, at)
		case inPool:
			rest := n.childTrackFields(at.pid, "pool")
			n.describeTrack(key, func(*track) []byte { return rest })
		}
		t = n.tracks[key]
	}
	n.latest, n.latestTrack = *at, t.id
	return t.id
}

func (n *names) counterTrack(key trackKey) *track {
	if t := n.tracks[key]; t != nil {
		return t
	}
	unit := uint64(unitBytes)
	switch {
	case strings.HasSuffix(key.name, "%"):
		unit = 0
	case key.name == "objects":
		unit = unitCount
	}
	name := key.name
	if key.key != `"bytes":` {
		name += " " + strings.ReplaceAll(unquote(key.key), "_", " ")
	}
	rest := n.childTrackFields(key.pid, name)
	rest = appendBytes(rest, trackCounter, appendNumber(nil, counterUnit, unit))
	return n.describeTrack(key, func(*track) []byte { return rest })
}

// beginLane returns the track on which a lifetime begins.
func (n *names) beginLane(of lifeKey, name string, ns uint64) uint64 {
	key := laneKey{of.pid, of.category, name}
	group := n.lanes[key]
	if group == nil {
		group = &lanes{name: unquote(name)}
		n.lanes[key] = group
	}
	last := len(group.free) - 1
	if last >= 0 && group.free[last].since <= ns {
		id := group.free[last].track
		group.free = group.free[:last]
		n.lives[of] = life{group, id}
		return id
	}
	id := n.newTrackID()
	n.define(packetTrack, append(appendNumber(nil, trackID, id), n.childTrackFields(of.pid, group.name)...))
	n.lives[of] = life{group, id}
	return id
}

// endLane returns the track on which a lifetime ends. known: it began.
func (n *names) endLane(of lifeKey, ns uint64) (id uint64, known bool) {
	l, known := n.lives[of]
	if known {
		delete(n.lives, of)
		l.group.free = append(l.group.free, freeLane{l.track, ns})
	}
	return l.track, known
}
