package statements_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"github.com/falldue/falldue/dialect"
	"github.com/falldue/falldue/internal/statements"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/migrations"
	"github.com/falldue/falldue/sqlgen"
)

var update = flag.Bool("update", false, "write the golden files anew")

var tables = dialect.Tables{Prefix: "falldue_"}

// formula compiles the text of a delay.
func formula(t *testing.T, text string) sqlgen.Formula {
	t.Helper()
	e, err := sqlgen.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	f, err := sqlgen.Compile(e)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// allOf returns every statement of the queue by its name, made for two
// rows where it takes a batch.
func allOf(t *testing.T, s dialect.Server) map[string]statements.Stmt {
	t.Helper()
	arctan, power := formula(t, "917m * atan(n^3 / 15)"), formula(t, "15s + n^4")
	const room = 2
	all := map[string]statements.Stmt{
		"take":                  statements.Take(s, tables, room),
		"pick":                  statements.Pick(s, tables, room),
		"candidates":            statements.Candidates(s, tables, &arctan),
		"sweep":                 statements.Sweep(s, tables, room),
		"delete":                statements.Delete(s, tables, room),
		"settle":                statements.Settle(s, tables, room),
		"settle_alike":          statements.SettleAlike(s, tables, room),
		"extend":                statements.Extend(s, tables, room),
		"extend_live":           statements.ExtendLive(s, tables, room),
		"permits":               statements.Permits(s, tables, room),
		"permit_range":          statements.PermitRange(s, tables),
		"make_permits":          statements.MakePermits(s, tables, room),
		"take_permits":          statements.TakePermits(s, tables, room),
		"extend_permits":        statements.ExtendPermits(s, tables, room),
		"return_permits":        statements.ReturnPermits(s, tables, room),
		"taken_permits":         statements.TakenPermits(s, tables, room),
		"permit_page":           statements.PermitPage(s, tables),
		"drop_permits":          statements.DropPermits(s, tables, room),
		"enqueue_unique":        statements.Enqueue(s, statements.EnqueueParams{Tables: tables, Unique: true}, room),
		"holders":               statements.Holders(s, tables, room),
		"lock_keys":             statements.LockKeys(s, tables, room),
		"hold_waiting":          statements.HoldWaiting(s, tables, room),
		"take_keys":             statements.TakeKeys(s, tables, room),
		"keys_of_token":         statements.KeysOfToken(s, tables, room),
		"replace_waiting":       statements.ReplaceWaiting(s, tables),
		"change_waiting":        statements.ChangeWaiting(s, tables),
		"withdraw":              statements.Withdraw(s, tables, room),
		"key_page":              statements.KeyPage(s, tables),
		"drop_keys":             statements.DropKeys(s, tables, room),
		"release_keys":          statements.ReleaseKeys(s, tables, room),
		"end_key_time":          statements.EndKeyTime(s, tables),
		"next_tasks":            statements.NextTasks(s, statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{arctan, power}}, room),
		"owned":                 statements.Owned(s, tables, room, false),
		"owned_locked":          statements.Owned(s, tables, room, true),
		"live":                  statements.Live(s, tables, room),
		"record":                statements.Record(s, tables, room),
		"forget":                statements.Forget(s, tables, room),
		"middle":                statements.Middle(s, tables, room),
		"forget_middle":         statements.ForgetMiddle(s, tables, room),
		"first_to_keep":         statements.FirstToKeep(s, tables),
		"enqueue":               statements.Enqueue(s, statements.EnqueueParams{Tables: tables}, room),
		"enqueue_one":           statements.EnqueueOne(s, statements.EnqueueParams{Tables: tables}),
		"enqueue_plain":         statements.Enqueue(s, statements.EnqueueParams{Tables: tables, Plain: true}, room),
		"enqueue_one_plain":     statements.EnqueueOne(s, statements.EnqueueParams{Tables: tables, Plain: true}),
		"put_policy":            statements.PutPolicy(s, tables),
		"policies":              statements.Policies(s, tables, room),
		"check":                 statements.Check(s, []sqlgen.Formula{arctan, power}, room),
		"list":                  statements.List(s, tables, statements.ListParams{}),
		"list_filtered":         statements.List(s, tables, statements.ListParams{ID: true, Queue: true, Kind: true, State: true, Key: true, Older: true, Newer: true, Upto: true, Phase: statements.PhaseRunning, Brief: true}),
		"span":                  statements.Span(s, tables, statements.ListParams{Queue: true, State: true}),
		"attempts":              statements.Attempts(s, tables),
		"count":                 statements.CountTasks(s, tables),
		"profile":               statements.Profile(s, tables),
		"profile key":           statements.ProfileKey(s, tables),
		"profile part":          statements.ProfilePart(s, tables),
		"all_policies":          statements.AllPolicies(s, tables),
		"abandoned":             statements.Abandoned(s, tables),
		"endless_runs":          statements.EndlessRuns(s, tables),
		"allowed_cancel":        statements.Allowed(s, tables, statements.AllowedParams{Action: statements.ActCancel, Locking: statements.LockedOrSkipped}, room),
		"allowed_delete":        statements.Allowed(s, tables, statements.AllowedParams{Action: statements.ActDelete, Locking: statements.LockedInTurn}, room),
		"allowed_retry":         statements.Allowed(s, tables, statements.AllowedParams{Action: statements.ActRetry, State: true}, room),
		"allowed_retry_unnamed": statements.Allowed(s, tables, statements.AllowedParams{Action: statements.ActRetry, Locking: statements.LockedInTurn}, room),
		"cancel_tasks":          statements.CancelTasks(s, tables, room),
		"expire_tasks":          statements.ExpireTasks(s, tables, room),
		"delete_tasks":          statements.DeleteTasks(s, tables, statements.ActDelete, room),
		"delete_any_tasks":      statements.DeleteTasks(s, tables, statements.ActDeleteAny, room),
		"retry_tasks":           statements.RetryTasks(s, tables, room),
		"run_tasks":             statements.RunTasks(s, tables, room),
		"put_payload":           statements.PutPayload(s, tables),
		"news":                  statements.News(s, tables),
		"new_tasks":             statements.NewTasks(s, tables),
		"queues":                statements.Queues(s, tables),
		"count_since":           statements.CountSince(s, tables, room),
		"count_ahead":           statements.CountAhead(s, tables),
		"finished_lanes":        statements.FinishedLanes(s, tables, room),
		"clean":                 statements.Clean(s, tables),
		"due_in":                statements.DueIn(s, tables),
		"drop":                  statements.Drop(s, tables, room),
		"now":                   statements.Now(s),
		"put_change":            statements.PutChange(s, tables),
		"read_changes":          statements.ReadChanges(s, tables),
		"drop_cancels":          statements.DropCancels(s, tables),
		"drop_changes":          statements.DropChanges(s, tables, room),
		"put_progress":          statements.PutProgress(s, tables, room),
		"read_progress":         statements.ReadProgress(s, tables),
		"orphaned_progress":     statements.OrphanedProgress(s, tables),
		"drop_progress":         statements.DropProgress(s, tables, room),
		"hold_claim":            statements.HoldClaim(s, tables),
		"put_step":              statements.PutStep(s, tables),
		"read_steps":            statements.ReadSteps(s, tables),
		"drop_steps":            statements.DropSteps(s, tables, room),
		"lost_steps":            statements.LostSteps(s, tables, room),
		"count_crashes":         statements.CountCrashes(s, tables, room),
		"step_owners":           statements.StepOwners(s, tables),
		"running":               statements.Running(s, tables),
		"watch_tasks":           statements.WatchTasks(s, tables, room),
		"watch_new":             statements.WatchNew(s, tables),
		"watch_lane":            statements.WatchLane(s, tables),
		"attempts_of":           statements.AttemptsOf(s, tables, room),
		"newest_in_lanes":       statements.EndsOfLanes(s, tables, true, room),
		"oldest_in_lanes":       statements.EndsOfLanes(s, tables, false, room),
		"list_ids":              statements.ListIDs(s, tables, statements.ListParams{Kind: true, Phase: statements.PhaseUnfinished}),
		"look_ids":              statements.LookIDs(s, tables, statements.ListParams{Kind: true, Newer: true, Phase: statements.PhaseRunning}),
		"look_ids_of_key":       statements.LookIDs(s, tables, statements.ListParams{Key: true, Newest: true}),
		"look_ids_of_parts":     statements.LookIDs(s, tables, statements.ListParams{Key: true, Part: true}),
		"list_near":             statements.List(s, tables, statements.ListParams{Queue: true, State: true, Key: true, Part: true, Upto: true, Near: true}),
		"list_ids_of_key":       statements.ListIDs(s, tables, statements.ListParams{Key: true}),
		"list_some":             statements.ListSome(s, tables, statements.ListParams{Kind: true, Phase: statements.PhaseRunning, Brief: true}, room),
		"list_newest":           statements.List(s, tables, statements.ListParams{Newest: true, Upto: true}),
		"span_newest":           statements.Span(s, tables, statements.ListParams{Newest: true, Kind: true}),
		"announce":              statements.Announce(s, tables),
		"see_worker":            statements.SeeWorker(s, tables),
		"read_workers":          statements.ReadWorkers(s, tables),
		"drop_worker":           statements.DropWorker(s, tables),
		"lost_workers":          statements.LostWorkers(s, tables),
		"read_schedules":        statements.ReadSchedules(s, tables),
		"put_schedule":          statements.PutSchedule(s, tables),
		"change_schedule":       statements.ChangeSchedule(s, tables),
		"schedules_by_name":     statements.SchedulesByName(s, tables, room),
		"lock_due":              statements.LockDue(s, tables, room, false),
		"wait_for_due":          statements.LockDue(s, tables, room, true),
		"ask_schedules":         statements.AskSchedules(s, tables, room),
		"answer_schedules":      statements.AnswerSchedules(s, tables, room),
		"move_schedules":        statements.MoveSchedules(s, tables, room),
		"set_schedule":          statements.SetSchedule(s, tables),
		"note_scheduled":        statements.NoteScheduled(s, tables, room),
		"drop_schedule":         statements.DropSchedule(s, tables),
		"enqueue_one_meta":      statements.EnqueueOne(s, statements.EnqueueParams{Tables: tables, Metadata: true}),
	}
	all["add_minutes"] = statements.AddMinutes(s, tables, room)
	all["read_minutes"] = statements.ReadMinutes(s, tables, statements.MinuteParams{})
	all["read_minutes_by_kind"] = statements.ReadMinutes(s, tables, statements.MinuteParams{ByKind: true})
	all["old_minutes"] = statements.OldMinutes(s, tables)
	all["drop_minutes"] = statements.DropMinutes(s, tables)
	all["read_sample"] = statements.ReadSample(s, tables)
	all["take_sample"] = statements.TakeSample(s, tables)
	all["put_sample"] = statements.PutSample(s, tables)
	all["put_deed"] = statements.PutDeed(s, tables)
	all["read_audit"] = statements.ReadAudit(s, tables)
	all["drop_audit"] = statements.DropAudit(s, tables)
	all["permits_of"] = statements.PermitsOf(s, tables, room)
	all["keep_permit"] = statements.KeepPermit(s, tables)
	all["free_permit"] = statements.FreePermit(s, tables)
	all["carry_permit"] = statements.CarryPermit(s, tables)
	maps.Copy(all, flowStatements(s, room))
	all["enqueue_plain_meta"] = statements.Enqueue(s, statements.EnqueueParams{Tables: tables, Plain: true, Metadata: true}, room)
	if s.Caps.Catalog != dialect.PgCatalog {
		all["id_spans"] = statements.IDSpans(s, tables, room)
		all["count_first"] = statements.CountFirst(s, tables)
		all["sample_ids"] = statements.SampleIDs(s, tables, room)
		all["count_range"] = statements.CountRange(s, tables)
	}
	if s.Caps.Catalog == dialect.PgCatalog {
		all["table_pages"] = statements.TablePages(s)
		all["sample_pages"] = statements.SamplePages(s, tables)
		all["all_lanes"] = statements.AllLanes(s, tables)
		all["count_lanes"] = statements.CountLanes(s, tables)
	}
	if s.Caps.Catalog == dialect.InnoDBCatalog {
		all["lane_ranges"] = statements.LaneRanges(s, tables, room)
		all["lane_ends"] = statements.LaneEnds(s, tables)
	}
	if stmt, ok := statements.BinaryLogs(s); ok {
		all["binary_logs"] = stmt
	}
	for fact, stmt := range statements.Facts(s) {
		all["fact_"+string(fact)] = stmt
	}
	if s.Caps.Rows != dialect.Unions {
		all["enqueue_alike_plain"] = statements.EnqueueAlike(s, statements.EnqueueParams{Tables: tables, Plain: true}, room)
		all["enqueue_alike_plain_meta"] = statements.EnqueueAlike(s, statements.EnqueueParams{Tables: tables, Plain: true, Metadata: true}, room)
		all["enqueue_alike"] = statements.EnqueueAlike(s, statements.EnqueueParams{Tables: tables}, room)
	}
	if statements.ClaimsAtOnce(s) || s.Caps.JSONLateral {
		all["find_due"] = statements.FindDue(s, statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{arctan, power}})
	}
	if statements.UnitesLanes(s) {
		all["unite_lanes"] = statements.UniteLanes(s, tables, room)
	}
	if s.Caps.LooseScan {
		all["next_lane"] = statements.NextLane(s, tables)
		all["next_lanes"] = statements.NextLanes(s, tables)
		all["occupied"] = statements.Occupied(s, tables, true, room)
		all["occupied_in_a_state"] = statements.Occupied(s, tables, false, room)
	}
	if s.Caps.CachesStatistics {
		all["refresh_statistics"] = statements.RefreshStatistics(s, tables)
	}
	all["heads"] = statements.Heads(s, tables, room)
	if statements.HasClaimSlots(s) {
		all["claim_slot_holders"] = statements.ClaimSlotHolders(s)
	}
	if statements.ClaimsAtOnce(s) {
		all["claim"] = statements.Claim(s, statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{arctan, power}})
		if statements.HasClaimSlots(s) {
			all["claim_in_slot"] = statements.Claim(s, statements.ClaimParams{Tables: tables, Formulas: []sqlgen.Formula{arctan, power}, InSlot: true})
		}
		all["claim_snoozed"] = statements.Claim(s, statements.ClaimParams{Tables: tables})
	} else {
		all["claim_lane"] = statements.ClaimLane(s, tables, &arctan)
		all["claim_lane_snoozed"] = statements.ClaimLane(s, tables, nil)
		if statements.HasClaimSlots(s) {
			all["take_claim_slot"] = statements.TakeClaimSlot(s)
			if s.Caps.Locks == dialect.NamedLocks {
				all["release_claim_slot"] = statements.ReleaseClaimSlot(s)
			}
		}
	}
	if s.Caps.Notify {
		all["enqueue_notify"] = statements.Enqueue(s, statements.EnqueueParams{Tables: tables, Notify: true}, room)
		all["enqueue_one_notify"] = statements.EnqueueOne(s, statements.EnqueueParams{Tables: tables, Notify: true})
	}
	if statements.StoresUnique(s) {
		all["store_unique"] = statements.StoreUnique(s, statements.EnqueueParams{Tables: tables, Unique: true})
		all["store_unique_meta"] = statements.StoreUnique(s, statements.EnqueueParams{Tables: tables, Unique: true, Metadata: true})
		all["store_unique_notify"] = statements.StoreUnique(s, statements.EnqueueParams{Tables: tables, Unique: true, Notify: true})
	}
	if s.Caps.Copy {
		all["copy"], all["copy_plain"] = statements.Copy(s, statements.EnqueueParams{Tables: tables}), statements.Copy(s, statements.EnqueueParams{Tables: tables, Plain: true})
		all["copy_plain_meta"] = statements.Copy(s, statements.EnqueueParams{Tables: tables, Plain: true, Metadata: true})
		all["copy_ids"], all["notify"] = statements.CopyIDs(s), statements.Notify(s)
	}
	if s.Caps.AmbiguousMissingTable {
		all["count_tables"] = statements.CountTables(s)
	}
	return all
}

// TestGolden compares each statement with its golden file.
func TestGolden(t *testing.T) {
	for _, name := range dialect.Names {
		s, err := dialect.DefaultServer(name)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join("testdata", "statements", string(name))
		if *update {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		all := allOf(t, s)
		for stmt, made := range all {
			file, got := filepath.Join(dir, stmt+".sql"), made.SQL+"\n-- binds: "+made.Binds()+"\n"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("%v; make golden writes it", err)
				continue
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s: %s (-golden +now):\n%s", name, stmt, diff)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.sql"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if _, ok := all[strings.TrimSuffix(filepath.Base(file), ".sql")]; !ok {
				t.Errorf("%s is of no statement", file)
			}
		}
	}
}

// TestNamesAreNoKeywords: no column of a result or a batch is named now or next, which Vitess's parser takes for keywords.
func TestNamesAreNoKeywords(t *testing.T) {
	t.Parallel()
	keyword := regexp.MustCompile(`(?i)(?: as |[a-z]\.|, )(?:now|next)(?:$|[ ,)])`)
	for _, name := range []dialect.Name{dialect.MySQL, dialect.MariaDB} {
		s, err := dialect.DefaultServer(name)
		if err != nil {
			t.Fatal(err)
		}
		for stmt, made := range allOf(t, s) {
			if found := keyword.FindString(made.SQL); found != "" {
				t.Errorf("%s: %s has %q", name, stmt, found)
			}
		}
	}
}

// migrated creates the tables in db.
func migrated(t *testing.T, db *sqlx.DB) dialect.Server {
	t.Helper()
	s, err := dialect.Probe(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	migrate(t, db, s)
	return s
}

func migrate(t *testing.T, db *sqlx.DB, s dialect.Server) {
	t.Helper()
	m, err := migrations.New(db.DB, s, tables)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestPrepared prepares every statement on every server.
func TestPrepared(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		for _, driver := range testdb.Drivers(engine) {
			db := testdb.OpenDriver(t, engine, driver)
			s := migrated(t, db)
			prepareAll(t, db, s)
			db.MustExec(statements.CreateTestClock(s).SQL)
			db.MustExec(statements.StartTestClock(s).SQL)
			prepareAll(t, db, statements.WithTestClock(s))
		}
	})
}

func prepareAll(t *testing.T, db *sqlx.DB, s dialect.Server) {
	t.Helper()
	for name, stmt := range allOf(t, s) {
		tx, err := db.BeginTx(t.Context(), nil) // COPY needs one
		if err != nil {
			t.Fatal(err)
		}
		if prepared, err := tx.PrepareContext(t.Context(), stmt.SQL); err != nil {
			t.Errorf("%s: %s: %v\n%s", db.DriverName(), name, err, stmt.SQL)
		} else {
			_ = prepared.Close()
		}
		_ = tx.Rollback()
	}
}

// TestProbeFindsTheDefaultServer compares DefaultServer with the results of Probe.
func TestProbeFindsTheDefaultServer(t *testing.T) {
	testdb.Each(t, func(t *testing.T, engine string) {
		found, err := dialect.Probe(t.Context(), testdb.Open(t, engine))
		if err != nil {
			t.Fatal(err)
		}
		want, err := dialect.DefaultServer(dialect.Name(engine))
		if err != nil {
			t.Fatal(err)
		}
		// Probe refuses later sessions in which a setting differs from this one.
		common, _, _ := strings.Cut(want.Caps.OddSession, " else ")
		if !strings.HasPrefix(found.Caps.OddSession, common) {
			t.Errorf("odd sessions are found by %q, which does not begin with %q", found.Caps.OddSession, common)
		}
		found.Caps.OddSession, found.Caps.MaxPacket, found.Caps.MaxRow = want.Caps.OddSession, 0, 0
		if found.Caps != want.Caps || found.Name() != want.Name() || found.Version == "" {
			t.Errorf("the server is %+v, the default is %+v", found, want)
		}
	})
}

func TestBind(t *testing.T) {
	rows := []statements.Row{{int64(1), int64(-2)}, {int64(1<<62 + 1), int64(3)}}
	cells := []any{int64(1), int64(-2), int64(1<<62 + 1), int64(3), int64(0), int64(0), int64(0), int64(0), "me"}
	for _, c := range []struct {
		engine dialect.Name
		want   []any
	}{
		{dialect.Postgres, []any{"{1,4611686018427387905}", "{-2,3}", "me"}},
		{dialect.SQLite, cells},
		{dialect.MySQL, cells},
	} {
		s, err := dialect.DefaultServer(c.engine)
		if err != nil {
			t.Fatal(err)
		}
		got := statements.Delete(s, tables, 4).Bind(statements.Values{"worker": "me"}, rows)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.engine, diff)
		}
	}
	s, err := dialect.DefaultServer(dialect.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	args := statements.Record(s, tables, 1).Bind(nil, []statements.Row{
		{int64(1), int64(1), int64(1), `a"b\c`, "{x,NULL}", int64(0), "ü\n", nil},
	})
	want := []any{"{1}", "{1}", "{1}", `{"a\"b\\c"}`, `{"{x,NULL}"}`, "{0}", "{\"ü\n\"}", "{\x01}"}
	if diff := cmp.Diff(want, args); diff != "" {
		t.Errorf("texts in arrays (-want +got):\n%s", diff)
	}
}

func TestBindPanicsOnMistakes(t *testing.T) {
	s, err := dialect.DefaultServer(dialect.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	for name, bind := range map[string]func(){
		"a missing value": func() { statements.Delete(s, tables, 1).Bind(nil, []statements.Row{{int64(1), int64(1)}}) },
		"too many rows":   func() { statements.Forget(s, tables, 1).Bind(nil, []statements.Row{{int64(1)}, {int64(2)}}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			bind()
		}()
	}
}

// TestParametersGoWhereTheTextNamesThem: the code may name the parameters in another
// order.
func TestParametersGoWhereTheTextNamesThem(t *testing.T) {
	t.Parallel()
	s, err := dialect.DefaultServer(dialect.MySQL)
	if err != nil {
		t.Fatal(err)
	}
	stmt := statements.ReleaseClaimSlot(s)
	if got := stmt.Bind(statements.Values{"slot": "slot", "number": "number"}, nil); !slices.Equal(got, []any{"slot", "number"}) {
		t.Errorf("%s\nis bound to %v", stmt.SQL, got)
	}
}
