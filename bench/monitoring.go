package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"codeberg.org/gpumemtop/gpumemtop/internal/flight"
)

// measureCostOfMonitoring measures the cost of being monitored: scrapes, flight logs and static probes.
func (b *bench) measureCostOfMonitoring() error {
	return b.measureTables(b.measureCostOfScrapes, b.measureFlightLogTime, b.measureUnusedProbe)
}

// measureCostOfScrapes compares spans without and with scrapes, in one run of a program.
func (b *bench) measureCostOfScrapes() error {
	cmd := b.programCommand([]string{b.gpumemtopPath(), "--headless", "--listen", "0", "--", b.examplePath("train"), "1000000000"})
	said, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start gpumemtop: %w", err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // the program ends by it, which is no failure
		_, _ = io.Copy(io.Discard, said)
		_ = cmd.Wait()
	}()
	line, err := bufio.NewReader(said).ReadString('\n')
	_, address, found := strings.Cut(strings.TrimSpace(line), "figures are at ")
	if err != nil || !found {
		return fmt.Errorf("gpumemtop said %q: %w", line, err)
	}
	rates := []int{0, 1, 100}
	shares := make([][]float64, len(rates))
	for range b.runs {
		for i, rate := range rates {
			share, err := scrapeRepeatedly(cmd.Process.Pid, address+"metrics", rate)
			if err != nil {
				return err
			}
			shares[i] = append(shares[i], share)
		}
	}
	b.printRow("scrapes/s", "gpumemtop's share of a core", "more than without")
	for i, rate := range rates {
		here, base := medianOf(shares[i]), medianOf(shares[0])
		b.printRow(rate, formatFixed(100*here, 2)+" %", formatFixed(100*(here-base), 2)+" %")
	}
	return nil
}

// scrapeRepeatedly scrapes for some seconds, and returns the share of a core that a process used meanwhile.
func scrapeRepeatedly(pid int, url string, rate int) (float64, error) {
	const seconds = 5
	before, err := processorTime(pid)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for i := 0; i < seconds*rate && time.Since(began) < seconds*time.Second; i++ { // some may have to wait
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		reply, err := http.Get(url) //nolint:gosec // gpumemtop named it
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, reply.Body)
		if err := errors.Join(err, reply.Body.Close()); err != nil {
			return 0, err
		}
	}
	time.Sleep(time.Until(began.Add(seconds * time.Second)))
	after, err := processorTime(pid)
	return (after - before).Seconds() / time.Since(began).Seconds(), err
}

// measureFlightLogTime shows how long a flight log takes at the end of a program: from the time in the log until the file has its
// name.
func (b *bench) measureFlightLogTime() error {
	library := filepath.Join(b.temp, "libgpumemtop.so")
	if err := exec.Command(b.gpumemtopPath(), "library", "-f", "-o", library).Run(); err != nil {
		return fmt.Errorf("gpumemtop library: %w", err)
	}
	var took []float64
	for i := range 10 * b.runs {
		logs := filepath.Join(b.temp, "logs", strconv.Itoa(i))
		if err := os.MkdirAll(logs, 0o700); err != nil {
			return err
		}
		cmd := b.programCommand([]string{b.examplePath("pipeline"), "3", "64K"})
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+library, "GPUMEMTOP_LOG="+logs)
		one, err := timeFlightLogWrite(cmd, logs)
		if err != nil {
			return err
		}
		took = append(took, milliseconds(one))
	}
	b.printRow("flight log written in ms, least", "median")
	b.printRow(formatFixed(slices.Min(took), 2), formatFixed(medianOf(took), 2))
	return nil
}

// timeFlightLogWrite runs a program that leaves a flight log, and returns how long writing that took.
func timeFlightLogWrite(cmd *exec.Cmd, logs string) (time.Duration, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return 0, err
	}
	renamed := os.NewFile(uintptr(fd), "inotify")
	defer renamed.Close() //nolint:errcheck // it was only read
	if _, err := unix.InotifyAddWatch(fd, logs, unix.IN_MOVED_TO); err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	_ = renamed.SetReadDeadline(time.Now().Add(time.Minute))
	_, err = renamed.Read(make([]byte, unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	there := time.Now()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return 0, err
	}
	log, err := flight.ReadFolders(logs)
	if err != nil || len(log.Processes) != 1 {
		return 0, fmt.Errorf("no flight log: %w", err)
	}
	p := &log.Processes[0]
	return there.Sub(time.Unix(0, int64(p.Started)+int64(p.Seconds*1e9))), nil
}

// probeLoop prints the ns that it takes to check the semaphores of the static probes of a create and a release: the least of many
// batches.
const probeLoop = `
#include "shim/base/usdt.h"
#include <stdio.h>
#include <time.h>
volatile uint16_t gmt_alloc_semaphore, gmt_free_semaphore, gmt_otel_alloc_semaphore, gmt_otel_free_semaphore;
enum { LOOPS = 1000000 };
static unsigned fired;
static double batch(bool probed)
{
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (int i = 0; i < LOOPS; i++) {
		__asm__ volatile("" ::: "memory");
		if (probed && gmt_usdt_allocs())
			fired++;
		if (probed && gmt_usdt_frees())
			fired++;
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / LOOPS;
}
int main(void)
{
	double least[2] = {1e9, 1e9};
	for (int i = 0; i < 400; i++) {
		double took = batch(i & 1);
		least[i & 1] = took < least[i & 1] ? took : least[i & 1];
	}
	printf("%.2f\n", (least[1] - least[0]) / 2);
	return (int)fired;
}
`

// measureUnusedProbe runs the shim's check of semaphores in a loop: in whole programs its cost is too small to measure.
func (b *bench) measureUnusedProbe() error {
	program := filepath.Join(b.temp, "probes")
	cc := exec.Command("gcc", "-std=gnu11", "-O2", "-I", b.root, "-x", "c", "-", "-o", program)
	cc.Stdin = strings.NewReader(probeLoop)
	if said, err := cc.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, said)
	}
	text, err := exec.Command(program).Output()
	if err != nil {
		return err
	}
	b.printRow("a static probe that nothing listens to, ns")
	b.printRow(strings.TrimSpace(string(text)))
	return nil
}
