package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processTimes has the processes of this machine by their ids. It is empty where there is
// no /proc.
type processTimes map[int]processTime

// processTime is how much processor time a process and its ended children have used.
type processTime struct {
	parent int
	used   time.Duration
}

// tick is the unit of times in /proc.
const tick = time.Second / 100

func readProcessTimes() processTimes {
	all := processTimes{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if id, p, ok := parseStat(string(text)); ok {
			all[id] = p
		}
	}
	return all
}

// parseStat reads a line of /proc/ID/stat. The name of the program may have spaces and
// brackets in it.
func parseStat(line string) (id int, p processTime, ok bool) {
	head, _, _ := strings.Cut(line, " ")
	end := strings.LastIndexByte(line, ')')
	id, err := strconv.Atoi(head)
	if err != nil || end < 0 {
		return 0, p, false
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 15 {
		return 0, p, false
	}
	p.parent, _ = strconv.Atoi(fields[1])
	for _, f := range fields[11:15] { // of the process, user and system; of its children
		n, _ := strconv.ParseInt(f, 10, 64)
		p.used += time.Duration(n) * tick
	}
	return id, p, true
}

// of returns the time that processes have used, with all their descendants.
func (all processTimes) of(roots ...int) (used time.Duration) {
	wanted := map[int]bool{}
	for _, id := range roots {
		wanted[id] = true
	}
	for id, p := range all {
		for at := id; at > 1; at = all[at].parent {
			if wanted[at] {
				used += p.used
				break
			}
		}
	}
	return used
}

// listeningProcess returns the ID of the process of this machine that listens on a port, or
// 0 if there is none, or this user may not know it.
func listeningProcess(port int) int {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			const listens = "0A"
			if len(fields) < 10 || fields[3] != listens || !strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
				continue
			}
			files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
			for _, file := range files {
				if to, _ := os.Readlink(file); to == "socket:["+fields[9]+"]" {
					id, _ := strconv.Atoi(strings.Split(file, "/")[2])
					return id
				}
			}
		}
	}
	return 0
}
