// Grafana writes the dashboards of grafana/ from the list of panels in panels.go:
//
//	go run ./internal/grafana
//
// The dashboard falldue.json shows the metrics of promfalldue. The dashboard falldue-otel.json shows the metrics
// of otelfalldue, as Prometheus stores them.
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/falldue/falldue/signals"
)

func main() {
	for name, v := range variants {
		if err := os.WriteFile(filepath.Join("grafana", name), dashboard(v), 0o644); err != nil { //nolint:gosec // everyone may read a dashboard
			log.Fatal(err)
		}
	}
}

// variant is a way in which metrics come into a Prometheus.
type variant struct {
	title, uid string
	otel       bool // under the names that OpenTelemetry's exporter for Prometheus makes
}

// variants are the dashboards, by the names of their files.
var variants = map[string]variant{
	"falldue.json":      {title: "falldue", uid: "falldue"},
	"falldue-otel.json": {title: "falldue (OpenTelemetry)", uid: "falldue-otel", otel: true},
}

var (
	metricName = regexp.MustCompile(`falldue_[a-z_]+`)
	labelName  = regexp.MustCompile(`@([a-z_]+)`)
)

// text returns an expression, or a legend, with the names of the variant. In panels.go metrics have their names on
// Prometheus, and labels begin with an @.
func (v variant) text(s string) string {
	s = metricName.ReplaceAllStringFunc(s, func(name string) string {
		m, suffix := metricOf(name)
		if m == nil || !v.otel {
			return name
		}
		return exported(m) + suffix
	})
	return labelName.ReplaceAllStringFunc(s, func(at string) string {
		label := at[1:]
		if v.otel && label != "le" {
			label = underscored(signals.Attribute(label))
		}
		return label
	})
}

// metricOf returns the metric of a series, or nil, and what follows the metric's name.
func metricOf(series string) (m *signals.Metric, suffix string) {
	for _, m := range signals.Metrics() {
		suffix, ok := strings.CutPrefix(series, m.Name)
		if !ok {
			continue
		}
		if suffix == "" || m.Type == signals.Histogram && (suffix == "_bucket" || suffix == "_sum" || suffix == "_count") {
			return m, suffix
		}
	}
	return nil, ""
}

// exported returns the name that OpenTelemetry's exporter gives a metric.
func exported(m *signals.Metric) string {
	name := underscored(m.OTel)
	if m.Unit == "s" {
		name += "_seconds"
	}
	if m.Type == signals.Counter {
		name += "_total"
	}
	return name
}

func underscored(name string) string { return strings.ReplaceAll(name, ".", "_") }

// object is a JSON object.
type object map[string]any

// source names the data source that the reader chooses.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// dashboard returns a dashboard as JSON.
func dashboard(v variant) []byte {
	var list []object
	x, y, id := 0, 0, 0
	for _, p := range panels {
		id++
		if x+p.wide > columns {
			x, y = 0, y+height
		}
		list = append(list, p.json(v, id, x, y))
		x += p.wide
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(object{
		"title": v.title, "uid": v.uid, "tags": []string{"falldue"}, "editable": true, "schemaVersion": 39, "refresh": "30s", "timezone": "browser",
		"time": object{"from": "now-6h", "to": "now"}, "graphTooltip": 1, "panels": list,
		"templating":  object{"list": []object{{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}, v.variable("queue"), v.variable("kind")}},
		"annotations": object{"list": []object{v.annotation("Pauses", pauses, "{{@subject}} is paused", "orange"), v.annotation("Policy overrides", overrides, "{{@subject}} has an override", "purple")}},
	})
	if err != nil {
		panic(err) // a panel has a value that JSON lacks
	}
	return b.Bytes()
}

// variable returns a variable of the values that a label has.
func (v variant) variable(label string) object {
	return object{
		"name": label, "label": label, "type": "query", "datasource": source, "refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".*",
		"current": object{"text": []string{"All"}, "value": []string{"$__all"}},
		"query":   object{"query": v.text("label_values(falldue_tasks, @" + label + ")"), "refId": "values"},
	}
}

// annotation returns marks on all graphs while an expression has values.
func (v variant) annotation(name, expr, title, color string) object {
	return object{"name": name, "datasource": source, "enable": true, "expr": v.text(expr), "titleFormat": v.text(title), "iconColor": color, "step": "60s"}
}

// json returns a panel.
func (p panel) json(v variant, id, x, y int) object {
	var targets []object
	for i, q := range p.queries {
		target := object{"refId": string(rune('A' + i)), "datasource": source, "expr": v.text(q.expr), "legendFormat": v.text(q.legend), "exemplar": q.exemplars}
		switch p.kind {
		case "stat", "table":
			target["instant"] = true
		case "heatmap":
			target["format"] = "heatmap"
		}
		targets = append(targets, target)
	}
	defaults := object{"unit": p.unit, "noValue": "none"}
	if p.most > 0 {
		defaults["max"] = p.most
	}
	if p.red > 0 {
		defaults["thresholds"] = object{"mode": "absolute", "steps": []object{{"color": "green", "value": nil}, {"color": "red", "value": p.red}}}
	}
	return object{
		"id": id, "title": p.title, "type": p.kind, "datasource": source, "targets": targets, "description": p.means + "\n\n**What to do:** " + p.advice,
		"gridPos": object{"x": x, "y": y, "w": p.wide, "h": height}, "fieldConfig": object{"defaults": defaults, "overrides": []object{}},
	}
}
