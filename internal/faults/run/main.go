// Run is the program of the fault suite.
package main

import (
	"fmt"
	"os"

	"github.com/falldue/falldue/internal/faults"
	_ "github.com/falldue/falldue/internal/testdb" // the drivers
)

func main() {
	if err := faults.Play(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
