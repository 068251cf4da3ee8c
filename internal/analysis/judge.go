package analysis

import (
	"cmp"
	"slices"

	"codeberg.org/gpumemtop/gpumemtop/internal/stats"
)

// Thresholds of diagnoses.
const (
	growthIterations  = 4         // fewer may be a warm-up that fills caches
	requestsLeast     = 20        // poolable requests, for a rate to mean something
	hitRateLow        = 0.8       // of the later half: programs that repeat themselves reach more than 0.9
	simplestServes    = 0.4       // of the requests, that the simplest pool would serve besides
	servesMore        = 0.1       // of the requests, that another policy would serve besides
	worseLeast        = 0.05      // of the requests, that are no longer served after a change
	stallShare        = 0.02      // of the run, that calls waited for spilled buffers
	wasteHigh         = 0.25      // of what is in use at the peak; rounding to powers of two wastes that on average
	wasteRatio        = 1.25      // max_waste_ratio that bounds waste by a fifth
	fragmentationHigh = 0.5       // at the peak: no free block has half of the free memory
	idleShare         = 0.2       // free part of what is reserved at the peak: less is not worth a change
	bytesLeast        = 64 << 10  // less waste or free memory does no harm
	matterShare       = 0.01      // of the peak, and of the device: less memory is not worth a change
	lagShare          = 0.1       // of all byte seconds in use, held after the last use
	lagLeast          = 1_000_000 // ns: less passes between one line of the program and the next
	lagBytes          = 256 << 10 // on average, held so: less is not worth a change
	driverShare       = 0.01      // of the run, spent on calls that could be saved
	copyShare         = 0.9       // of the time in driver calls
	deviceShare       = 0.9       // of device memory: a larger input may not fit
	hiddenShare       = 0.2       // of all creates, of the peak or of what leaked, through one function
	alignMost         = 4096      // bytes: sub-buffers at its multiples are right on all devices that we know
	hostSize          = 64        // bytes: a cache line
	soonSeconds       = 30 * 24 * 3600
	wholeShare        = 0.995 // of the growth: the rest is rounding
)

// need is the part of the evidence without which a rule says nothing.
type need uint8

const (
	anyRun   need = iota // only what all evidence has
	ofMoment             // Memory
	ofLate               // Late
	ofWhole              // Whole
)

// rule looks for one problem.
type rule struct {
	needs need
	judge func(*Evidence) (Diagnosis, bool)
}

// rules are in the order of importance within a severity where their shares are equal.
var rules = []rule{
	{ofWhole, findFirstFailure},
	{ofWhole, findMistakes},
	{anyRun, findRefusedCalls},
	{anyRun, findMemoryGrowth},
	{ofWhole, findGrowthBesideBuffers},
	{ofWhole, findSmallBuffers},
	{ofWhole, findMemoryKeptByIterations},
	{anyRun, findLeaks},
	{ofWhole, findObjectGrowth},
	{ofWhole, findObjectsLeft},
	{anyRun, unpairedCallRule(stats.Mappings)},
	{anyRun, unpairedCallRule(stats.References)},
	{anyRun, unpairedCallRule(stats.Acquisitions)},
	{anyRun, findLostEvents},
	{anyRun, findReleasedInFlight},
	{anyRun, findMemoryBesideBuffers},
	{anyRun, findFullDevice},
	{ofLate, findWorstMissSite},
	{ofLate, findHarmfulLimit},
	{anyRun, findBetterPolicy},
	{anyRun, findWorseChange},
	{ofWhole, findLowHitRate},
	{ofWhole, findLoopWithoutPool},
	{ofWhole, findCopyingCreates},
	{ofWhole, findHoistableBuffers},
	{ofWhole, findHeldTooLong},
	{ofMoment, findLongUnused},
	{ofWhole, findUselessOwnPool},
	{ofWhole, transferRule(Rewritten)},
	{ofWhole, transferRule(ReadBack)},
	{ofWhole, transferRule(Unchanged)},
	{ofWhole, transferRule(Copied)},
	{ofWhole, transferRule(SecondOne)},
	{ofWhole, transferRule(ColdRead)},
	{ofWhole, transferRule(Small)},
	{ofWhole, transferRule(Blocking)},
	{ofWhole, transferRule(BlockingMap)},
	{ofMoment, findBlockingReads},
	{anyRun, transferRule(Returned)},
	{ofMoment, findHighWaste},
	{anyRun, findSlowPoolMemory},
	{ofWhole, findUnusedFreeBlocks},
	{anyRun, findIdlePool},
	{ofMoment, findFragmentation},
	{ofWhole, findOverReserved},
	{anyRun, findUselessPolicy},
	{anyRun, findExposedContents},
	{ofWhole, findUnusedBuffers},
	{ofWhole, findProgramsWithOwnPool},
	{ofWhole, findHiddenCallers},
	{ofWhole, findShortStacks},
	{ofWhole, findFineAlignment},
	{ofWhole, findCopiedHostMemory},
	{anyRun, findLeadingGhost},
}

// memoryNoun is what sentences call the memory objects of the run.
func (e *Evidence) memoryNoun() string { return stats.NounForMemory(e.Run.Kinds, false) }

func (e *Evidence) hasPart(part need) bool {
	switch part {
	case ofMoment:
		return e.Memory != nil
	case ofLate:
		return e.Late != nil
	case ofWhole:
		return e.Whole != nil
	}
	return true
}

// applyRules applies the rules. The most important diagnosis comes first. pass says what becomes of what the rule with a number found.
func (e *Evidence) applyRules(pass func(rule int, d Diagnosis, found bool) (Diagnosis, bool)) []Diagnosis {
	var list []Diagnosis
	if e.Whole == nil { // a report has sections of their own, and one line for each of the two
		list = append(findFailures(e), mistakeFindings(e)...)
	}
	for i, r := range rules {
		if !e.hasPart(r.needs) {
			continue
		}
		d, found := r.judge(e)
		if d, found = pass(i, d, found); found {
			list = append(list, d)
		}
	}
	for i := range list {
		e.nameProcessOfSite(&list[i])
	}
	rank := map[Severity]int{Problem: 0, Advice: 1, Note: 2}
	slices.SortStableFunc(list, func(a, b Diagnosis) int {
		return cmp.Or(cmp.Compare(rank[a.Severity], rank[b.Severity]), cmp.Compare(b.Share, a.Share))
	})
	return list
}
