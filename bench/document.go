package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// record is the file of an engine's results next to the document. A run of some
// measures replaces these in it and leaves the others.
type record struct {
	Engine string `json:"engine"`
	Parts  []part `json:"parts"`
}

// part holds the results that were measured under the same setting.
type part struct {
	Setting setting `json:"setting"`
	Results results `json:"results"`
}

//go:embed doc.md.tmpl
var docText string

var docTemplate = template.Must(template.New("doc").Parse(docText))

// docSection is the section of an engine in the document.
type docSection struct {
	Title string
	Parts []docPart
}

// docPart is a part as the template prints it.
type docPart struct {
	Setting          setting
	Commands         []string
	Tables           []string // in Markdown
	Plot, ClaimsPlot string   // file names, empty without results
}

// titles lists the engines in the order of the document.
var titles = []struct{ engine, title string }{{postgres, "PostgreSQL"}, {mySQL, "MySQL"}, {mariaDB, "MariaDB"}, {sqlite, "SQLite"}}

// writeDoc adds results to the record of an engine, and rewrites the document and
// its plots. path is the document; records and plots are in a folder of the same
// name without its ending.
func writeDoc(path, engine string, now part) error {
	folder := strings.TrimSuffix(path, filepath.Ext(path))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	known, err := readRecord(folder, engine)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(record{engine, replace(known.Parts, now)}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, engine+".json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	plots, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil {
		return err
	}
	for _, plot := range plots { // parts come and go
		if err := os.Remove(plot); err != nil {
			return err
		}
	}
	data := struct {
		Measures []measure
		Sections []docSection
	}{Measures: measures}
	for _, t := range titles {
		r, err := readRecord(folder, t.engine)
		if err != nil {
			return err
		}
		if len(r.Parts) == 0 {
			continue
		}
		s := docSection{Title: t.title}
		for i, p := range r.Parts {
			c, err := newDocPart(p, folder, t.title, fmt.Sprintf("%s-%d", t.engine, i+1))
			if err != nil {
				return err
			}
			s.Parts = append(s.Parts, c)
		}
		data.Sections = append(data.Sections, s)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(docTemplate.Execute(file, data), file.Close())
}

// newDocPart prepares a part for the document, and draws its plots into the folder
// under the given name.
func newDocPart(p part, folder, title, name string) (docPart, error) {
	c := docPart{Setting: p.Setting}
	for _, t := range tablesOf(p.Results) {
		c.Tables = append(c.Tables, t.RenderMarkdown())
	}
	for _, r := range p.Results {
		if r.Command != "" && !slices.Contains(c.Commands, r.Command) {
			c.Commands = append(c.Commands, r.Command)
		}
	}
	if len(p.Results.rates()) > 0 {
		c.Plot = name + ".svg"
		if err := plotRates(filepath.Join(folder, c.Plot), title, p.Results); err != nil {
			return c, err
		}
	}
	if len(p.Results.claims()) > 0 {
		c.ClaimsPlot = name + "-claims.svg"
		if err := plotClaims(filepath.Join(folder, c.ClaimsPlot), title, p.Results); err != nil {
			return c, err
		}
	}
	return c, nil
}

func readRecord(folder, engine string) (r record, err error) {
	text, err := os.ReadFile(filepath.Join(folder, engine+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	err = json.Unmarshal(text, &r)
	return r, err
}

// replace returns parts with the measures of now replaced by those in now.
func replace(parts []part, now part) (list []part) {
	for _, p := range parts {
		p.Results = slices.DeleteFunc(slices.Clone(p.Results), func(x result) bool {
			return slices.ContainsFunc(now.Results, func(y result) bool { return x.Measure == y.Measure })
		})
		switch {
		case p.Setting.sameButDate(now.Setting):
			now.Results = append(p.Results, now.Results...)
		case len(p.Results) > 0:
			list = append(list, p)
		}
	}
	now.Results.sort()
	return append(list, now)
}

// sort sorts results in the order of the measures.
func (r results) sort() {
	rank := func(x result) int {
		return slices.IndexFunc(measures, func(m measure) bool { return strings.HasPrefix(x.Measure, strings.TrimSuffix(m.name, "_p50_ms")) })
	}
	slices.SortStableFunc(r, func(a, b result) int { return rank(a) - rank(b) })
}

// systems lists the systems of the results, in the order of the engine's systems.
func (r results) systems() (names []string) {
	for _, s := range systems[r[0].Engine] {
		if slices.ContainsFunc(r, func(x result) bool { return x.System == s.name }) {
			names = append(names, s.name)
		}
	}
	for _, x := range r {
		if !slices.Contains(names, x.System) {
			names = append(names, x.System)
		}
	}
	return names
}

// About says what is measured, for the document.
func (m measure) About() string {
	about := m.about
	if strings.Contains(about, "%[1]s") {
		about = fmt.Sprintf(about, "many")
	}
	return about
}

// Name is the measure's name.
func (m measure) Name() string { return m.name }
