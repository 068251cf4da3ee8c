package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// One parser and one writer for the payload of each kind. Parsers take anything, return slices of the payload, and do
// not clean text: it comes from the target.

// AppendProcess writes the payload of a PROCESS: a program and its arguments, cut to PayloadMax bytes.
func AppendProcess(b []byte, command []string) []byte {
	return boundPayload(append(b, strings.Join(command, "\x00")...), len(b))
}

// ParseProcess returns the program of a PROCESS and its arguments.
func ParseProcess(payload []byte) (program []byte, arguments iter.Seq[[]byte]) {
	program, rest, more := bytes.Cut(bytes.TrimSuffix(payload, []byte{0}), []byte{0})
	if !more {
		return program, func(func([]byte) bool) {}
	}
	return program, bytes.SplitSeq(rest, []byte{0})
}

// AppendModule writes the payload of a MODULE: a path, cut to PayloadMax bytes.
func AppendModule(b []byte, path string) []byte { return boundPayload(append(b, path...), len(b)) }

// AppendModuleWithBuild writes the payload of a module's second MODULE, with its build id in hexadecimal; false when it does
// not fit.
func AppendModuleWithBuild(b []byte, path, buildID string) ([]byte, bool) {
	if len(path)+1+len(buildID) > PayloadMax {
		return b, false
	}
	return appendPair(b, path, buildID), true
}

// ParseModule returns the path of a MODULE, and its build id in hexadecimal, empty when it has none.
func ParseModule(payload []byte) (path, buildID []byte) { return parsePair(payload) }

// ParseDevice returns the name of a DEVICE, the version of its driver and its identity.
func ParseDevice(payload []byte) (name, driver, identity []byte) {
	name, driver = parsePair(payload)
	driver, identity, _ = bytes.Cut(driver, []byte{0})
	return name, driver, identity
}

// TextBeforeNUL returns the text of a KERNEL or DIAG: what stands before the first NUL.
func TextBeforeNUL(payload []byte) []byte {
	text, _, _ := bytes.Cut(payload, []byte{0})
	return text
}

// ParseLimit returns the setting that a LIMIT answers, PolicySetting or the name of a limit, and its value. Without a value
// (nil) the name is the bytes that the pool was trimmed to. The payload of a refusal is the error, which TextBeforeNUL returns.
func ParseLimit(payload []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(bytes.TrimRight(payload, "\x00"), []byte("="))
	return name, value
}

// PolicySetting is the name that ParseLimit returns for a change of the policy.
const PolicySetting = "policy"

// PlanSetting is the name that ParseLimit returns for a piece of a plan; see allocator.Draft.
const PlanSetting = "plan"

// The names that ParseLimit returns for experiments; see ParseArmsSetting.
const (
	ArmsSetting = "arms" // one begins or ends, or a limit of its alternative changes
	ArmSetting  = "arm"  // an arm decides from a request on
	ArmsOff     = "off"  // the value of ArmsSetting at the end
)

// ParseArmsSetting reads the value of ArmsSetting: the alternative like a value of PolicySetting, ArmsOff, or "+name=value", and how
// many requests the program has made. It also reads the value of ArmSetting: the number of the arm, and of its first request.
func ParseArmsSetting(value string) (what string, request uint64, ok bool) {
	what, number, _ := strings.Cut(value, ",request=")
	request, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return what, 0, false
	}
	return what, request, true
}

// PeriodSetting is the name that ParseLimit returns where the pool learned from the session how long an iteration of the
// program takes, in ns; 0: it no longer repeats.
const PeriodSetting = "period"

// RelieveSetting is the name that ParseLimit returns where the pool gave memory back for other programs; the value is a Relief.
const RelieveSetting = "relieve"

// Relief is memory that a pool gives back because other programs lack it.
type Relief struct {
	Asked, Given uint64 // bytes
	Why          string
}

// Why a pool is to give memory back.
const (
	ReliefShort = "short" // little is free
	ReliefIdle  = "idle"  // little is free, but hardly any other program has memory: only what has been idle for long goes
	ReliefAsked = "asked" // a program under another session failed to get memory
	ReliefTimed = "timed" // no program lacks it: one block of the size asked for, to the power of two, goes, so that the driver's release is timed
)

// ReliefIdleNS is how long memory has been idle that goes for ReliefIdle.
const ReliefIdleNS = 1_000_000_000

// MessageText returns what asks a pool for it.
func (r Relief) MessageText() string { return fmt.Sprintf("%s %d %s", RelieveSetting, r.Asked, r.Why) }

// AnswerText returns what the pool answers.
func (r Relief) AnswerText() string {
	return fmt.Sprintf("%s=%d %d %s", RelieveSetting, r.Asked, r.Given, r.Why)
}

// LeastIdleNS returns for how many ns memory must have been idle to go; 0: any that is goes, and what lacks when it comes back.
func (r Relief) LeastIdleNS() int64 {
	if r.Why == ReliefIdle {
		return ReliefIdleNS
	}
	return 0
}

// ParseReliefValue reads what Message or Answer has behind the name.
func ParseReliefValue(value string) (r Relief, ok bool) {
	words := strings.Fields(value)
	if len(words) < 2 || len(words) > 3 {
		return r, false
	}
	var err, err2 error
	r.Asked, err = strconv.ParseUint(words[0], 10, 64)
	if len(words) == 3 {
		r.Given, err2 = strconv.ParseUint(words[1], 10, 64)
	}
	r.Why = words[len(words)-1]
	return r, err == nil && err2 == nil && (r.Why == ReliefShort || r.Why == ReliefIdle || r.Why == ReliefAsked || r.Why == ReliefTimed)
}

// IsLimitWithoutEffect reports whether a LIMIT changes nothing that is worth a mark: it is about a piece of a plan that is not its end, or an
// arm's turn.
func IsLimitWithoutEffect(payload []byte) bool {
	name, value := ParseLimit(payload)
	return string(name) == ArmSetting || string(name) == PlanSetting && !bytes.HasPrefix(value, []byte("end "))
}

// ParsePolicyValue reads the value of PolicySetting: the name of the policy, and the limits that it begins with, "name=value,...".
func ParsePolicyValue(value string) (name, limits string) {
	name, limits, _ = strings.Cut(value, ",")
	return name, limits
}

// AppendFrame writes one frame of the payload of a TAG.
func AppendFrame(b []byte, f Frame) []byte {
	return binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(b, f.Module), f.Offset)
}

// FramesOfTag returns the call stack in the payload of a TAG, innermost first.
func FramesOfTag(payload []byte) []Frame {
	frames := make([]Frame, len(payload)/SizeofFrame)
	for i := range frames {
		at := payload[i*SizeofFrame:]
		frames[i] = Frame{binary.NativeEndian.Uint64(at), binary.NativeEndian.Uint64(at[8:])}
	}
	return frames
}

// SiteFrame is one frame of a SITE. What is unknown is empty.
type SiteFrame struct {
	Function, File string
	Line           uint64 // 0: unknown
	Module         string // path
	Offset         uint64 // of the return address in Module
	HasOffset      bool
}

// separators may not occur in the texts of a SITE.
var separators = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ", "\x00", " ")

// AppendSiteFrame writes one line of the payload of a SITE. The caller keeps the payload within PayloadMax bytes.
func AppendSiteFrame(b []byte, f SiteFrame) []byte {
	b = append(append(b, separators.Replace(f.Function)...), '\t')
	b = append(append(b, separators.Replace(f.File)...), '\t')
	if f.Line > 0 {
		b = strconv.AppendUint(b, f.Line, 10)
	}
	b = append(append(b, '\t'), separators.Replace(f.ModuleAndOffset())...)
	return append(b, '\n')
}

// ModuleAndOffset returns "module+0xoffset", or the module alone when the offset is unknown.
func (f *SiteFrame) ModuleAndOffset() string {
	if !f.HasOffset {
		return f.Module
	}
	return f.Module + "+0x" + strconv.FormatUint(f.Offset, 16)
}

// ParseSite goes through the frames of a SITE, innermost first.
func ParseSite(payload []byte) iter.Seq[SiteFrame] {
	return func(yield func(SiteFrame) bool) {
		for line := range strings.Lines(strings.TrimRight(string(payload), "\x00")) {
			if !yield(parseSiteFrame(strings.TrimSuffix(line, "\n"))) {
				return
			}
		}
	}
}

func parseSiteFrame(line string) SiteFrame {
	fields := append(strings.SplitN(line, "\t", 4), "", "", "")
	f := SiteFrame{Function: fields[0], File: fields[1], Module: fields[3]}
	f.Line, _ = strconv.ParseUint(fields[2], 10, 64) // 0: unknown
	if at := strings.LastIndex(f.Module, "+0x"); at >= 0 {
		if offset, err := strconv.ParseUint(f.Module[at+3:], 16, 64); err == nil {
			f.Module, f.Offset, f.HasOffset = f.Module[:at], offset, true
		}
	}
	return f
}

func appendPair(b []byte, first, second string) []byte {
	return append(append(append(b, first...), 0), second...)
}

func parsePair(payload []byte) (first, second []byte) {
	first, second, _ = bytes.Cut(bytes.TrimRight(payload, "\x00"), []byte{0})
	return first, second
}

// boundPayload bounds the payload that starts at from.
func boundPayload(b []byte, from int) []byte { return b[:min(len(b), from+PayloadMax)] }
