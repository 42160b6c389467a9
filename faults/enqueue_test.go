package faults

import (
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/falldue/falldue"
	"github.com/falldue/falldue/internal/testdb"
	"github.com/falldue/falldue/ops"
)

// A driver that takes a lost answer for a lost request makes database/sql send the
// statement again, which stores the task twice. So this test cuts connections after
// every number of bytes that an answer to an enqueue may have.
func TestNoEnqueueIsDoubledByALostAnswer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short has SQLite alone, which answers by no connection")
	}
	testdb.Each(t, func(t *testing.T, engine string) {
		if engine == testdb.SQLite {
			t.Skip("SQLite answers by no connection")
		}
		for _, driver := range testdb.Drivers(engine) {
			t.Run(driver, func(t *testing.T) {
				t.Parallel()
				enqueueOverCutLinks(t, &database{engine: engine, dsn: testdb.DSN(t, engine)}, driver)
			})
		}
	})
}

func enqueueOverCutLinks(t *testing.T, d *database, driver string) {
	role := Role{Name: "test", Driver: driver, DSN: d.dsn, Connections: 1, Lease: lease}
	if d.engine == testdb.Postgres {
		role.Notify = falldue.NotifyInTx // a statement of its own would use up the bytes of an enqueue's answer
	}
	direct, q := prepare(t, role)
	r := startRelay(t, d.address(nil))
	var err error
	if role.DSN, err = changed(d.engine, d.dsn, r.address, "", nil); err != nil {
		t.Fatal(err)
	}
	db, through, err := role.open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	kind := falldue.NewKind[Job]("job", falldue.KindConfig{})
	if _, err := kind.Enqueue(t.Context(), through, Job{Key: "first"}); err != nil { // prepares what is to be prepared
		t.Fatal(err)
	}
	acknowledged := map[string]bool{}
	for n := range int64(200) {
		if err := db.PingContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.left.Store(n)
		key := fmt.Sprint("cut after ", n)
		_, err := kind.Enqueue(t.Context(), through, Job{Key: key})
		acknowledged[key] = err == nil
		r.left.Store(endless)
	}
	table, err := ReadTable(t.Context(), direct, q)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, row := range table {
		times[row.Key]++
	}
	unanswered := 0
	for key, ok := range acknowledged {
		if n := times[key]; n > 1 || ok && n == 0 {
			t.Errorf("%s: acknowledged: %t, and the task is %d times in the table", key, ok, n)
		}
		if !ok && times[key] > 0 {
			unanswered++
		}
	}
	if unanswered == 0 {
		t.Error("no cut came between a commit and its answer")
	}
}

// relay forwards connections. After a number of bytes of answers it cuts the
// connection that they come over, and no other one later.
type relay struct {
	address string
	left    atomic.Int64
}

const endless = 1 << 50

func startRelay(t *testing.T, upstream string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	r := &relay{address: l.Addr().String()}
	r.left.Store(endless)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed
			}
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				t.Error(err)
				_ = client.Close()
				return
			}
			go func() {
				_, _ = io.Copy(server, client)
				_ = server.Close()
			}()
			go r.answer(client, server)
		}
	}()
	return r
}

// answer forwards answers until they end or are cut.
func (r *relay) answer(client, server net.Conn) {
	defer client.Close()
	defer server.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		left := r.left.Add(int64(-n))
		if left < 0 {
			r.left.Store(endless)
			_, _ = client.Write(buffer[:int64(n)+left])
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// Tasks that several statements store are stored all or not at all. Otherwise a retry
// would store some of them twice.
func TestEnqueueIsAllOrNothing(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, engine string) {
		role := Role{Name: "test", Driver: testdb.Drivers(engine)[0], DSN: testdb.DSN(t, engine), Connections: 2, Lease: lease}
		db, q := prepare(t, role)
		if engine == testdb.SQLite {
			db.MustExec("create trigger unlucky before insert on falldue_tasks when new.priority = 13 begin select raise(abort, 'unlucky'); end")
		} else {
			db.MustExec("alter table falldue_tasks add constraint unlucky check (priority <> 13)")
		}
		kind := falldue.NewKind[Job]("job", falldue.KindConfig{})
		for _, n := range []int{2, 3, 7, 23, 501, 1000} {
			params := make([]falldue.EnqueueParams, n)
			for i := range params {
				params[i] = kind.Params(Job{})
			}
			params[n-1] = kind.Params(Job{}, falldue.EnqueueOptions{Priority: new(13)})
			if receipts, err := q.EnqueueMany(t.Context(), params...); err == nil {
				t.Errorf("%d tasks, the last one refused: enqueued as %v", n, receipts)
			}
			if counts, err := ops.New(q).Counts(t.Context()); err != nil || len(counts) > 0 {
				t.Fatalf("of %d tasks, the last one refused, %v are there (error %v)", n, counts, err)
			}
		}
	})
}
