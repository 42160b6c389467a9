package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/falldue/falldue/backoff"
)

func policyListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the presets with their parameters, formulas and sources",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := bufio.NewWriter(cmd.OutOrStdout())
			lines := json.NewEncoder(w)
			lines.SetEscapeHTML(false)
			for i, preset := range backoff.Presets() {
				if asJSON {
					if err := lines.Encode(preset); err != nil {
						return err
					}
					continue
				}
				if i > 0 {
					fmt.Fprintln(w)
				}
				printPreset(w, preset)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

// printPreset ignores write errors: the writer keeps the first, and Flush returns
// it.
func printPreset(w *bufio.Writer, p backoff.Preset) {
	defaults := make([]string, len(p.Params))
	for i, param := range p.Params {
		defaults[i] = param.Name + "=" + param.Default
	}
	fmt.Fprintf(w, "%s(%s)\n  %s\n", p.Name, strings.Join(defaults, ", "), p.Doc)
	for _, part := range []struct{ name, text string }{
		{"delay", p.Delay}, {"jitter", p.Jitter}, {"attempts", p.MaxAttempts}, {"elapsed", p.MaxElapsed},
	} {
		if part.text != "" {
			fmt.Fprintf(w, "  %-13s %s\n", part.name, part.text)
		}
	}
	for _, param := range p.Params {
		fmt.Fprintf(w, "  %-13s %s, %s: %s\n", param.Name, param.Kind, param.Range(), param.Doc)
	}
	fmt.Fprintf(w, "  %-13s %s\n", "source", p.Source)
}
