package ndjson

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// words are the values of an enum by their words.
type words struct {
	of map[string]uint64
	// to returns the word of a value, false when there is none.
	to func(uint64) (string, bool)
}

// newWords lists an enum: values count up from 0, and one without a word shows as its number.
func newWords(word func(uint64) string) *words {
	w := &words{of: map[string]uint64{}}
	var list []string
	for v := uint64(0); ; v++ {
		text := word(v)
		if text[0] >= '0' && text[0] <= '9' {
			break
		}
		list = append(list, text)
		w.of[text] = v
	}
	w.to = func(v uint64) (string, bool) {
		if v < uint64(len(list)) {
			return list[v], true
		}
		return "", false
	}
	return w
}

var (
	kinds    = newWords(func(v uint64) string { return wire.Kind(v).String() })
	outcomes = newWords(func(v uint64) string { return wire.Outcome(v).String() })

	ops = map[wire.Kind]*words{
		wire.KindCreate:  newWords(func(v uint64) string { return wire.Memory(v).String() }),
		wire.KindUse:     newWords(func(v uint64) string { return wire.Command(v).String() }),
		wire.KindSync:    newWords(func(v uint64) string { return wire.Sync(v).String() }),
		wire.KindOrder:   newWords(func(v uint64) string { return wire.Order(v).String() }),
		wire.KindAwait:   newWords(func(v uint64) string { return wire.Await(v).String() }),
		wire.KindContext: lives,
		wire.KindQueue:   lives,
		wire.KindTag:     newWords(func(v uint64) string { return wire.TagMode(v).String() }),
		wire.KindDiag:    newWords(func(v uint64) string { return wire.Diag(v).String() }),
	}
	lives = newWords(func(v uint64) string { return wire.Life(v).String() })

	reasons = map[wire.Kind]*words{
		wire.KindCreate: newWords(func(v uint64) string { return wire.Miss(v).String() }),
		wire.KindEvict:  newWords(func(v uint64) string { return wire.Evict(v).String() }),
	}
)
