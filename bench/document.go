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

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/falldue/falldue/internal/chart"
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

// docData is what the template prints.
type docData struct {
	Measures []measure
	Sections []docSection
	Soaks    []soakRecord
	Soak     string // the table of the soaks, in Markdown
}

// docSection is the section of an engine in the document.
type docSection struct {
	Title string
	Note  string
	Parts []docPart
}

// docPart is a part as the template prints it.
type docPart struct {
	Setting          setting
	Commands         []string
	Tables           []string // in Markdown
	Plot, ClaimsPlot string   // file names, empty without results
	title            string
	results          results
}

// titles lists the engines in the order of the document, with what a reader should know.
var titles = []struct{ engine, title, note string }{
	{postgres, "PostgreSQL", ""}, {mySQL, "MySQL", ""}, {mariaDB, "MariaDB", ""}, {sqlite, "SQLite", ""},
	{tiDB, "TiDB", "The server is what the line of its settings says. With the store unistore it is one process, made for\ntests, and not a cluster: its figures say what falldue's statements cost there, and nothing of a cluster."},
}

// titleOf returns the name of an engine in documents.
func titleOf(engine string) string {
	for _, t := range titles {
		if t.engine == engine {
			return t.title
		}
	}
	return engine
}

// docFolder returns the folder of a document, which its records and plots are in, too.
func docFolder(path string) string { return filepath.Dir(path) }

// soakFolder is the folder of soaks in that folder.
const soakFolder = "soak"

// writeDoc adds results to the record of an engine, and rewrites the document and
// its plots.
func writeDoc(path, engine string, now part) error {
	folder := docFolder(path)
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
	return rewriteDoc(path)
}

// writeSoakDoc replaces the record of a soak, and rewrites the document and its pictures.
func writeSoakDoc(path string, r soakRecord) error {
	folder := filepath.Join(docFolder(path), soakFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := r.write(filepath.Join(folder, r.Engine+".json")); err != nil {
		return err
	}
	return rewriteDoc(path)
}

// rewriteDoc writes the document and its pictures from the records.
func rewriteDoc(path string) error {
	data, err := readDoc(docFolder(path))
	if err != nil {
		return err
	}
	return errors.Join(data.draw(docFolder(path)), data.writeTo(path))
}

// writeTo writes the document.
func (d docData) writeTo(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(docTemplate.Execute(file, d), file.Close())
}

// readDoc reads all records.
func readDoc(folder string) (data docData, err error) {
	data.Measures = measures
	for _, t := range titles {
		r, err := readRecord(folder, t.engine)
		if err != nil {
			return data, err
		}
		var s soakRecord
		if err := readJSON(filepath.Join(folder, soakFolder, t.engine+".json"), &s); err != nil {
			return data, err
		}
		if s.Engine != "" {
			data.Soaks = append(data.Soaks, s)
		}
		if len(r.Parts) == 0 {
			continue
		}
		section := docSection{Title: t.title, Note: t.note}
		for i, p := range r.Parts {
			section.Parts = append(section.Parts, newDocPart(p, t.title, fmt.Sprintf("%s-%d", t.engine, i+1)))
		}
		data.Sections = append(data.Sections, section)
	}
	data.Soak = soakComparison(data.Soaks)
	return data, nil
}

// soakComparison makes a table with a column for each soak. A cell has the medians of the
// begin and of the end.
func soakComparison(list []soakRecord) string {
	t := table.NewWriter()
	header, columns := table.Row{""}, []table.ColumnConfig{}
	for i, r := range list {
		header = append(header, r.Title())
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(columns)
	for _, c := range soakColumns {
		row, known := table.Row{c.name}, false
		for _, r := range list {
			cell := ""
			for _, f := range r.Figures {
				if f.Name == c.name {
					cell, known = number(f.First)+" to "+number(f.Last), true
				}
			}
			row = append(row, cell)
		}
		if known {
			t.AppendRow(row)
		}
	}
	return t.RenderMarkdown()
}

// newDocPart prepares a part for the document, whose plots have the given name.
func newDocPart(p part, title, name string) docPart {
	p.Results = slices.Clone(p.Results)
	p.Results.sort()
	c := docPart{Setting: p.Setting, title: title, results: p.Results}
	for _, t := range tablesOf(p.Results) {
		c.Tables = append(c.Tables, t.RenderMarkdown())
	}
	for _, r := range p.Results {
		if r.Command != "" && !slices.Contains(c.Commands, r.Command) {
			c.Commands = append(c.Commands, r.Command)
		}
	}
	slices.Sort(c.Commands)
	if len(p.Results.rates()) > 0 {
		c.Plot = name + ".svg"
	}
	if len(p.Results.claims()) > 0 {
		c.ClaimsPlot = name + "-claims.svg"
	}
	return c
}

// pictures returns the pictures of the document by their places in its folder.
func (d docData) pictures() map[string]chart.Figure {
	all := map[string]chart.Figure{}
	for _, s := range d.Sections {
		for _, p := range s.Parts {
			if p.Plot != "" {
				all[p.Plot] = drawRates(p.title, p.results)
			}
			if p.ClaimsPlot != "" {
				all[p.ClaimsPlot] = drawClaims(p.title, p.results)
			}
		}
	}
	for _, s := range d.Soaks {
		all[filepath.Join(soakFolder, s.Engine+".svg")] = drawSoak(s.Title(), s.Samples)
	}
	return all
}

// draw draws the pictures into the folder, in place of all that are there: parts come and go.
func (d docData) draw(folder string) error {
	for _, pattern := range []string{"*.svg", filepath.Join(soakFolder, "*.svg")} {
		old, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return err
		}
		for _, path := range old {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for name, f := range d.pictures() {
		if err := saveFigure(filepath.Join(folder, name), f); err != nil {
			return err
		}
	}
	return nil
}

func readRecord(folder, engine string) (r record, err error) {
	err = readJSON(filepath.Join(folder, engine+".json"), &r)
	return r, err
}

// readJSON reads a file, if there is one, into a value.
func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
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

// sort sorts results in the order of the measures, and of the figures of each.
func (r results) sort() {
	var order []string
	for _, m := range measures {
		order = append(append(order, m.name), m.also...)
	}
	rank := func(x result) int { return slices.Index(order, figureOf(x.Measure)) }
	slices.SortStableFunc(r, func(a, b result) int { return rank(a) - rank(b) })
}

// figureOf returns what descriptions call a figure: they do not tell those apart that have
// the number of waiting tasks in their names.
func figureOf(name string) string {
	if strings.HasPrefix(name, "claim_ms_") {
		return "claim_ms"
	}
	return name
}

// systems lists the systems of the results, in the order of the engine's systems.
func (r results) systems() (names []string) {
	for _, s := range systems[r[0].Engine] {
		for _, x := range r {
			near, far := nearOf(x.System)
			if (x.System == s.name || far && near == s.name) && !slices.Contains(names, x.System) {
				names = append(names, x.System)
			}
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
