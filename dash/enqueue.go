package dash

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/falldue/falldue"
)

// enqueueView is the form for a task.
type enqueueView struct {
	Kind, Queue   string
	Kinds, Queues []string
	Trouble       *trouble
}

func enqueuePage(in *request) (page, error) {
	v := enqueueView{Kind: in.query.Get("kind"), Queue: in.query.Get("queue")}
	if err := in.need(Enqueue, Target{Queue: v.Queue, Kind: v.Kind}); err != nil {
		return page{}, err
	}
	p := in.h.reads.pulse.get(in.r.Context())
	v.Queues, v.Kinds = names(p.Value)
	v.Trouble = troubleOf(p.Err)
	return page{Title: "Enqueue a task", Nav: "queues", Regions: []region{{ID: "enqueue", Template: "enqueue", Data: v, Fixed: true}}}, nil
}

// enqueueTask enqueues a task with arguments as JSON.
func enqueueTask(in *request) (done, error) {
	kind, queue := in.r.PostFormValue("kind"), in.r.PostFormValue("queue")
	d := done{entry: Entry{Target: Target{Queue: queue, Kind: kind}, Why: in.r.PostFormValue("why")}}
	if err := in.need(Enqueue, d.entry.Target); err != nil {
		return d, err
	}
	args := json.RawMessage(strings.TrimSpace(in.r.PostFormValue("args")))
	if !json.Valid(args) {
		return d, mistake("The arguments are not valid JSON. Nothing was enqueued.")
	}
	opts := falldue.EnqueueOptions{Queue: queue, Key: in.r.PostFormValue("key")}
	receipt, err := falldue.NewKind[json.RawMessage](kind, falldue.KindConfig{}).Enqueue(in.r.Context(), in.h.queue, args, opts)
	if err != nil {
		return d, err
	}
	d.entry.Target.ID, d.entry.Count = receipt.ID, 1
	d.to = link("task", "id", strconv.FormatInt(receipt.ID, 10), "done", "enqueued")
	return d, nil
}
