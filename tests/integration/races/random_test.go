package races

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// TestRandomExchangesOpenNothing disturbs 2,000 launches with no regard to what they do: from
// the moment at which the identities are known, a peer flips this and that as
// fast as it can, until the program has looked.
func TestRandomExchangesOpenNothing(t *testing.T) {
	launches := 1000 // for each user
	if testing.Short() {
		launches = 100
	}
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		t.Parallel()
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		onStage(t, u, func(s *stage) error {
			if err := s.control(); err != nil {
				return err
			}
			p, err := s.newPeer(rand.New(rand.NewPCG(seed, 0)))
			if err != nil {
				return err
			}
			defer p.end()
			refused, flips, useful := 0, 0, 0
			for n := range launches {
				o, did, err := s.harass(p)
				if err != nil {
					return fmt.Errorf("launch %d: %w", n, err)
				}
				flips += did
				no, err := judge(o)
				if err != nil {
					t.Errorf("launch %d: %v", n, err)
				}
				if no {
					refused++
				}
				if o.readsOpen() {
					useful++
				}
			}
			t.Logf("%d launches, %d flips, %d launches refused", launches, flips, refused)
			if useful < launches/4 {
				t.Errorf("only in %d launches could the program read what is open", useful)
			}
			if flips < launches {
				t.Errorf("only %d flips in %d launches", flips, launches)
			}
			return nil
		})
	})
}

// harass makes one launch, with the peer at work from the moment at which the
// identities are known to the program's first round.
func (s *stage) harass(p *peer) (o outcome, flips int, err error) {
	working := false
	halt := func() error {
		if !working {
			return nil
		}
		working = false
		n, err := p.stop()
		flips += n
		return err
	}
	o, err = s.tracee.run(func(at stop) (bool, error) {
		if !at.examines(s.secret) {
			return true, nil
		}
		working = true
		p.start()
		return false, nil
	}, halt)
	return o, flips, errors.Join(err, halt())
}

// A peer flips on a thread of its own in the stage's mount namespace.
type peer struct {
	flips   []flip
	random  *rand.Rand
	working atomic.Bool
	begin   chan struct{}
	done    chan peerResult
}

type peerResult struct {
	flips int
	err   error
}

func (s *stage) newPeer(random *rand.Rand) (*peer, error) {
	namespace, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	p := &peer{flips: s.flips, random: random, begin: make(chan struct{}), done: make(chan peerResult)}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: it stays in the namespace
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(namespace, unix.CLONE_NEWNS)
		}
		unix.Close(namespace)
		ready <- err
		if err != nil {
			return
		}
		for range p.begin {
			var r peerResult
			for first := true; r.err == nil && (first || p.working.Load()); first = false {
				r.err = p.flip(s)
				r.flips++
			}
			p.done <- r
		}
	}()
	return p, <-ready
}

// flip does one thing, dawdles, and undoes it.
func (p *peer) flip(s *stage) error {
	f := p.flips[p.random.IntN(len(p.flips))]
	if err := f.do(s); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	for range p.random.IntN(200) {
		runtime.Gosched()
		_ = unix.Getppid()
	}
	if err := f.undo(s); err != nil {
		return fmt.Errorf("undo: %s: %w", f.name, err)
	}
	return nil
}

func (p *peer) start() {
	p.working.Store(true)
	p.begin <- struct{}{}
}

// stop returns how many flips there were. All of them are undone.
func (p *peer) stop() (int, error) {
	p.working.Store(false)
	r := <-p.done
	return r.flips, r.err
}

func (p *peer) end() { close(p.begin) }
