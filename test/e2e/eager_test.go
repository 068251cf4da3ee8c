package e2e

import "testing"

// With --eager a buffer gets its room when it is created, and its contents stay; where that is so without, the summary says that
// there is nothing to do. See docs/RATIONALE.md.
func TestEager(t *testing.T) {
	t.Parallel()
	const early, late, contents = "create yes, use no\n", "create no, use yes\n", "first byte 7\n"
	for _, c := range []struct {
		d    *driver
		bare string
		note string
	}{{&pocl, late, ""}, {&rusticl, early, "--eager: there is nothing to do"}} {
		t.Run(c.d.name, func(t *testing.T) {
			t.Parallel()
			env := c.d.environment(t)
			if bare := run(t, command{args: []string{testProgram("eager")}, env: env}); string(bare.stdout) != c.bare+contents {
				t.Fatalf("bare: %s\n%s", bare.stdout, bare.stderr)
			}
			for _, policy := range []string{"none", "futhark", "slab"} {
				args := []string{gpumemtop(), "--headless", "--policy", policy, "--eager", testProgram("eager")}
				r := run(t, command{args: args, env: env})
				if r.code != 0 || string(r.stdout) != early+contents {
					t.Errorf("%s: %s: %s\n%s", policy, r, r.stdout, r.stderr)
				}
				if said := contains(r.stderr, "--eager: "); said != (c.note != "") || said && !contains(r.stderr, c.note) {
					t.Errorf("%s: %s", policy, r.stderr)
				}
			}
		})
	}
}
