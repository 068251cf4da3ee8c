package figures

import (
	"bytes"
	"encoding/json"
	"strconv"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Members are figures as the members of a JSON object, in the order of the table.
type Members struct {
	scope Scopes
	value func(*Figure) Value
}

// JSONMembers returns those of a run or of a process.
func (s *Subject) JSONMembers() Members {
	if s.Evidence == nil {
		return Members{InProcess, func(f *Figure) Value { return f.get(s) }}
	}
	return Members{InRun, func(f *Figure) Value { return f.get(s) }}
}

// JSONMembersOfSite returns those of a call site of a run.
func (s *Subject) JSONMembersOfSite(t *stats.Tag) Members {
	return Members{InSite, func(f *Figure) Value { return f.site(s, t) }}
}

// JSONMembersOfShare returns those of a share of the memory.
func JSONMembersOfShare(s *stats.Share) Members {
	return Members{InShare, func(f *Figure) Value { return f.share(s) }}
}

// MarshalJSON implements json.Marshaler. A figure that is unknown is 0.
func (m Members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for _, f := range table {
		if f.Scopes&m.scope == 0 {
			continue
		}
		b.WriteString("," + strconv.Quote(f.Key) + ":")
		value, err := f.encodeJSON(m.value(f))
		if err != nil {
			return nil, err
		}
		b.Write(value)
	}
	text := append(b.Bytes(), '}')
	text[0] = '{'
	return text, nil
}

func (f *Figure) encodeJSON(v Value) ([]byte, error) {
	switch f.Unit {
	case Rate:
		return json.Marshal(v.Number)
	case Seconds:
		return json.Marshal(v.Number / 1e9)
	default:
		return strconv.AppendUint(nil, v.Exact, 10), nil
	}
}
