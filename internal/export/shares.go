package export

import (
	"codeberg.org/gpumemtop/gpumemtop/internal/model"
)

// ShareSummary is what one range of sizes, or one class, has of a run.
type ShareSummary struct {
	Class        string  `json:"class,omitempty"`    // of a class
	Smallest     *uint64 `json:"smallest,omitempty"` // of a bucket: granted sizes from here
	Largest      *uint64 `json:"largest,omitempty"`  // to here
	Creates      uint64  `json:"creates"`
	Hits         uint64  `json:"hits"`
	Misses       uint64  `json:"misses"`
	HitRate      float64 `json:"hit_rate"`
	InUse        uint64  `json:"in_use"`
	BytesCached  uint64  `json:"bytes_cached"`
	BytesCooling uint64  `json:"bytes_cooling"`
	BlocksCached uint64  `json:"blocks_cached"`
}

// shares fills in what is counted by size and by class.
func (s *Summary) shares(from *model.Snapshot) {
	s.PerBucket, s.PerClass = []ShareSummary{}, []ShareSummary{}
	for i := range from.Buckets {
		b := &from.Buckets[i]
		summary := shareSummary(&b.Share)
		summary.Smallest, summary.Largest = &b.Smallest, &b.Largest
		s.PerBucket = append(s.PerBucket, summary)
	}
	for i := range from.Classes {
		summary := shareSummary(&from.Classes[i].Share)
		summary.Class = from.Classes[i].Name
		s.PerClass = append(s.PerClass, summary)
	}
}

func shareSummary(s *model.Share) ShareSummary {
	return ShareSummary{
		Creates: s.Creates, Hits: s.Hits, Misses: s.Misses, HitRate: s.HitRate(), InUse: s.InUse,
		BytesCached: s.Cached, BytesCooling: s.Cooling, BlocksCached: s.Blocks,
	}
}
