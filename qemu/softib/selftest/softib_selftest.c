// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of softib's RC and memory region rules by a kernel consumer.  Load the
 * module when the ports of softib0 and softib1 are ACTIVE, and read the "ok" and
 * "not ok" lines in the log.  The module stays loaded only if all tests pass.
 */
#include <linux/module.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#define N	(64 * 1024)
#define PAGES	(N / PAGE_SIZE)
#define LACC	IB_ACCESS_LOCAL_WRITE
#define RW	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

struct end {
	struct ib_device *dev;
	struct ib_pd *pd, *pd2;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 *buf;
	u16 lid;
	int event;
	struct ib_mr *mr;
	struct scatterlist sg[PAGES];
};

static struct end a, b;
static int failed, bad_here;
static struct ib_wc wc;

static void complain(int line, const char *what)
{
	bad_here++;
	pr_err("softib_selftest:   line %d: %s\n", line, what);
}

#define CHECK(c)	((c) ? (void)0 : complain(__LINE__, #c))

static void on_event(struct ib_event *ev, void *ctx)
{
	((struct end *)ctx)->event = ev->event;
}

static const char *expected_name;
static struct ib_device *found;

static int match(struct ib_device *dev)
{
	if (!found && !strcmp(dev_name(&dev->dev), expected_name) && ib_device_try_get(dev))
		found = dev;
	return 0;
}

/* A reference to a device; NULL if there is none of this name. */
static struct ib_device *device_get(const char *name)
{
	static struct ib_client client = { .name = "softib_selftest", .add = match };

	found = NULL;
	expected_name = name;
	if (ib_register_client(&client))
		return NULL;
	ib_unregister_client(&client);
	return found;
}

static int end_open(struct end *e, const char *name)
{
	struct ib_cq_init_attr ca = { .cqe = 256 };
	struct ib_port_attr pa;

	e->dev = device_get(name);
	if (!e->dev)
		return -ENODEV;
	e->buf = (u8 *)__get_free_pages(GFP_KERNEL, get_order(N));
	e->pd = ib_alloc_pd(e->dev, 0);
	e->pd2 = ib_alloc_pd(e->dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	e->cq = ib_create_cq(e->dev, NULL, NULL, e, &ca);
	if (!e->buf || IS_ERR(e->pd) || IS_ERR(e->pd2) || IS_ERR(e->cq) ||
	    ib_query_port(e->dev, 1, &pa))
		return -EIO;
	e->lid = pa.lid;
	return pa.state == IB_PORT_ACTIVE ? 0 : -ENETDOWN;
}

static void end_close(struct end *e)
{
	if (!e->dev)
		return;
	if (!IS_ERR_OR_NULL(e->cq))
		ib_destroy_cq(e->cq);
	if (!IS_ERR_OR_NULL(e->pd2))
		ib_dealloc_pd(e->pd2);
	if (!IS_ERR_OR_NULL(e->pd))
		ib_dealloc_pd(e->pd);
	free_pages((unsigned long)e->buf, get_order(N));
	ib_device_put(e->dev);
}

static int qp_new(struct end *e)
{
	struct ib_qp_init_attr ia = {
		.event_handler = on_event, .qp_context = e, .send_cq = e->cq, .recv_cq = e->cq,
		.cap = { .max_send_wr = 32, .max_recv_wr = 32,
			 .max_send_sge = 4, .max_recv_sge = 4 },
		.sq_sig_type = IB_SIGNAL_REQ_WR, .qp_type = IB_QPT_RC, .port_num = 1,
	};

	e->qp = ib_create_qp(e->pd, &ia);
	e->event = -1;
	e->mr = NULL;
	return PTR_ERR_OR_ZERO(e->qp);
}

static int qp_up(struct end *e, struct end *peer, int access, int rd, int dest_rd)
{
	struct ib_qp_attr q = {
		.qp_state = IB_QPS_INIT, .port_num = 1, .qp_access_flags = access,
		.path_mtu = IB_MTU_2048, .dest_qp_num = peer->qp->qp_num, .rq_psn = 1, .sq_psn = 1,
		.max_rd_atomic = rd, .max_dest_rd_atomic = dest_rd, .min_rnr_timer = 12,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
	};
	int ret = ib_modify_qp(e->qp, &q, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			       IB_QP_ACCESS_FLAGS);

	q.qp_state = IB_QPS_RTR;
	q.ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_dlid(&q.ah_attr, peer->lid);
	rdma_ah_set_port_num(&q.ah_attr, 1);
	ret = ret ?: ib_modify_qp(e->qp, &q, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
				  IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				  IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	q.qp_state = IB_QPS_RTS;
	return ret ?: ib_modify_qp(e->qp, &q, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
				   IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/* wr_id 1: send side, 2: receive, 9: helper requests */
static int post(struct end *e, enum ib_wr_opcode op, u64 addr, u32 len, u32 lkey,
		u64 raddr, u32 key)
{
	struct ib_sge s = { .addr = addr, .length = len, .lkey = lkey };
	struct ib_rdma_wr w = {
		.wr = { .wr_id = 1, .opcode = op, .send_flags = IB_SEND_SIGNALED, .sg_list = &s,
			.num_sge = op == IB_WR_LOCAL_INV ? 0 : 1 },
		.remote_addr = raddr, .rkey = key,
	};

	if (op == IB_WR_LOCAL_INV || op == IB_WR_SEND_WITH_INV)
		w.wr.ex.invalidate_rkey = key;
	else
		w.wr.ex.imm_data = cpu_to_be32(0x1234);
	return ib_post_send(e->qp, &w.wr, NULL);
}

static int post_buf(struct end *e, enum ib_wr_opcode op, u32 off, u32 len, u64 raddr, u32 key)
{
	return post(e, op, (uintptr_t)e->buf + off, len, e->pd->local_dma_lkey, raddr, key);
}

static int post_recv(struct end *e, u32 len)
{
	struct ib_sge s = {
		.addr = (uintptr_t)e->buf, .length = len, .lkey = e->pd->local_dma_lkey,
	};
	struct ib_recv_wr w = { .wr_id = 2, .sg_list = &s, .num_sge = 1 };

	return ib_post_recv(e->qp, &w, NULL);
}

static int wait(struct end *e)
{
	int i;

	for (i = 0; i < 2000; i++) {
		if (ib_poll_cq(e->cq, 1, &wc) == 1)
			return wc.status;
		usleep_range(1000, 2000);
	}
	return -ETIMEDOUT;
}

static int reg(struct end *e, struct ib_pd *pd, int access)
{
	struct ib_reg_wr w = {
		.wr = { .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED, .wr_id = 9 },
	};
	unsigned int off = 100;
	int i, n;

	e->mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, PAGES);
	if (IS_ERR(e->mr))
		return PTR_ERR(e->mr);
	sg_init_table(e->sg, PAGES);
	for (i = 0; i < PAGES; i++)	/* in reverse order, so that the pages are not contiguous */
		sg_set_buf(&e->sg[i], e->buf + N - (i + 1) * PAGE_SIZE, PAGE_SIZE);
	n = ib_dma_map_sg(e->dev, e->sg, PAGES, DMA_BIDIRECTIONAL);
	if (ib_map_mr_sg(e->mr, e->sg, n, &off, PAGE_SIZE) != n)
		return -EINVAL;
	e->mr->iova = (e->mr->iova & 0xffff) | 0x123400000000ULL;
	ib_update_fast_reg_key(e->mr, 0x42);
	w.mr = e->mr;
	w.key = e->mr->rkey;
	w.access = access;
	return ib_post_send(e->qp, &w.wr, NULL) ?: wait(e);
}

/* the byte at an offset of the region */
static u8 *at(struct end *e, u32 off)
{
	off += 100;
	return e->buf + N - (off / PAGE_SIZE + 1) * PAGE_SIZE + off % PAGE_SIZE;
}

static bool state_is(struct end *e, enum ib_qp_state s)
{
	struct ib_qp_init_attr ia;
	struct ib_qp_attr q;

	return !ib_query_qp(e->qp, &q, IB_QP_STATE, &ia) && q.qp_state == s;
}

#define B_IOVA	(b.mr->iova)
#define B_KEY	(b.mr->rkey)
#define B_LEN	((u32)b.mr->length)

/* The request fails with this status; an event at the responder: its QP fails too. */
static void denied(int status, int event)
{
	int i;

	CHECK(wait(&a) == status);
	CHECK(wc.wr_id == 1);
	CHECK(state_is(&a, IB_QPS_ERR));
	if (event < 0) {
		CHECK(state_is(&b, IB_QPS_RTS));
		return;
	}
	/* the event comes after the completion, from the same work item */
	for (i = 0; i < 2000 && READ_ONCE(b.event) != event; i++)
		usleep_range(1000, 2000);
	CHECK(b.event == event);
	CHECK(state_is(&b, IB_QPS_ERR));
}

static void t_write(void)
{
	u32 i, bad = 0;

	CHECK(!reg(&b, b.pd, LACC | IB_ACCESS_REMOTE_WRITE));
	CHECK(b.mr->length == N - 100);
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 7, 20000, B_IOVA + 333, B_KEY));
	CHECK(wait(&a) == IB_WC_SUCCESS && wc.opcode == IB_WC_RDMA_WRITE);
	for (i = 0; i < B_LEN; i++)
		bad += *at(&b, i) != (i >= 333 && i < 20333 ? a.buf[7 + i - 333] : 0xbb);
	CHECK(!bad);
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, B_LEN, B_IOVA, B_KEY));
	CHECK(wait(&a) == IB_WC_SUCCESS);
	CHECK(*at(&b, B_LEN - 1) == a.buf[B_LEN - 1]);
}

static void t_read(void)
{
	u32 i, bad = 0;

	CHECK(!reg(&b, b.pd, IB_ACCESS_REMOTE_READ));
	for (i = 0; i < B_LEN; i++)
		*at(&b, i) = i * 7;
	CHECK(!post_buf(&a, IB_WR_RDMA_READ, 11, 30000, B_IOVA + 5000, B_KEY));
	CHECK(wait(&a) == IB_WC_SUCCESS && wc.opcode == IB_WC_RDMA_READ && wc.byte_len == 30000);
	for (i = 0; i < 30000; i++)
		bad += a.buf[11 + i] != (u8)((5000 + i) * 7);
	CHECK(!bad && a.buf[30011] == (30011 * 3) % 256);
}

static void t_key(void)
{
	CHECK(!reg(&b, b.pd, LACC | RW));
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, 8, B_IOVA, B_KEY ^ 1));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	CHECK(*at(&b, 0) == 0xbb);
}

static void t_end(void)
{
	CHECK(!reg(&b, b.pd, LACC | RW));
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, 9, B_IOVA + B_LEN - 8, B_KEY));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	CHECK(*at(&b, B_LEN - 1) == 0xbb);
}

static void t_start(void)
{
	CHECK(!reg(&b, b.pd, LACC | RW));
	CHECK(!post_buf(&a, IB_WR_RDMA_READ, 0, 9, B_IOVA - 1, B_KEY));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
}

static void t_wrap(void)
{
	CHECK(!reg(&b, b.pd, LACC | RW));
	CHECK(!post_buf(&a, IB_WR_RDMA_READ, 0, 16, ~0ULL - 7, B_KEY));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
}

static void t_ro(void)
{
	CHECK(!reg(&b, b.pd, IB_ACCESS_REMOTE_READ));
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, 8, B_IOVA, B_KEY));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
}

static void t_wo(void)
{
	CHECK(!reg(&b, b.pd, LACC | IB_ACCESS_REMOTE_WRITE));
	CHECK(!post_buf(&a, IB_WR_RDMA_READ, 0, 8, B_IOVA, B_KEY));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
}

static void t_inv(void)
{
	CHECK(!reg(&b, b.pd, LACC | RW));
	CHECK(!post(&b, IB_WR_LOCAL_INV, 0, 0, 0, 0, B_KEY));
	CHECK(wait(&b) == IB_WC_SUCCESS && wc.opcode == IB_WC_LOCAL_INV);
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, 8, B_IOVA, B_KEY));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
}

static void t_send_inv(void)
{
	CHECK(!reg(&b, b.pd, LACC | RW));
	CHECK(!post_recv(&b, 64));
	CHECK(!post_buf(&a, IB_WR_SEND_WITH_INV, 0, 64, 0, B_KEY));
	CHECK(wait(&a) == IB_WC_SUCCESS);
	CHECK(wait(&b) == IB_WC_SUCCESS && wc.opcode == IB_WC_RECV && wc.byte_len == 64);
	CHECK(wc.wc_flags == IB_WC_WITH_INVALIDATE && wc.ex.invalidate_rkey == B_KEY);
	CHECK(!post_buf(&a, IB_WR_RDMA_READ, 0, 8, B_IOVA, B_KEY));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
}

static void t_send_inv_bad(void)
{
	CHECK(!post_recv(&b, 64));
	CHECK(!post_buf(&a, IB_WR_SEND_WITH_INV, 0, 64, 0, 0xabcdef00));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	CHECK(wait(&b) == IB_WC_LOC_QP_OP_ERR);
}

static void t_pd(void)		/* region of another protection domain */
{
	CHECK(reg(&b, b.pd2, LACC | RW) == IB_WC_LOC_QP_OP_ERR);
	CHECK(state_is(&b, IB_QPS_ERR));
}

static void t_global(void)	/* the unsafe global key: only for its own domain */
{
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, 8, (uintptr_t)b.buf,
			b.pd2->unsafe_global_rkey));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
}

static void t_global_ok(void)
{
	struct ib_pd *pd = b.pd;

	ib_destroy_qp(b.qp);
	b.pd = b.pd2;
	CHECK(!qp_new(&b));
	b.pd = pd;
	ib_destroy_qp(a.qp);
	CHECK(!qp_new(&a));
	CHECK(!qp_up(&a, &b, RW, 4, 4) && !qp_up(&b, &a, RW, 4, 4));
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, 8, (uintptr_t)b.buf + 50,
			b.pd2->unsafe_global_rkey));
	CHECK(wait(&a) == IB_WC_SUCCESS && !memcmp(b.buf + 50, a.buf, 8));
}

static void t_local_key_remotely(void)
{
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, 8, (uintptr_t)b.buf, b.pd->local_dma_lkey));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	CHECK(b.buf[0] == 0xbb);
}

static void t_lkey(void)
{
	CHECK(!post(&a, IB_WR_SEND, (uintptr_t)a.buf, 8, 0xabcdef00, 0, 0));
	denied(IB_WC_LOC_PROT_ERR, -1);
}

static void t_lkey_mr(void)	/* a region as local buffer, addressed by its iova */
{
	CHECK(!reg(&a, a.pd, LACC));
	CHECK(!post_recv(&b, 6000));
	CHECK(!post(&a, IB_WR_SEND, a.mr->iova + 10, 6000, a.mr->lkey, 0, 0));
	CHECK(wait(&a) == IB_WC_SUCCESS && wait(&b) == IB_WC_SUCCESS);
	CHECK(b.buf[0] == *at(&a, 10) && b.buf[5999] == *at(&a, 6009));
}

static void t_lkey_ro(void)
{
	CHECK(!reg(&b, b.pd, RW | LACC));
	CHECK(!reg(&a, a.pd, 0));
	CHECK(!post(&a, IB_WR_RDMA_READ, a.mr->iova, 8, a.mr->lkey, B_IOVA, B_KEY));
	denied(IB_WC_LOC_PROT_ERR, -1);
}

static void t_imm(void)
{
	CHECK(!reg(&b, b.pd, LACC | RW));
	CHECK(!post_recv(&b, 1));
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE_WITH_IMM, 0, 5000, B_IOVA, B_KEY));
	CHECK(wait(&a) == IB_WC_SUCCESS && wc.opcode == IB_WC_RDMA_WRITE);
	CHECK(wait(&b) == IB_WC_SUCCESS && wc.opcode == IB_WC_RECV_RDMA_WITH_IMM);
	CHECK(wc.byte_len == 5000);
	CHECK(wc.wc_flags == IB_WC_WITH_IMM && wc.ex.imm_data == cpu_to_be32(0x1234));
	CHECK(*at(&b, 4999) == a.buf[4999]);
}

static void t_twice(void)
{
	struct ib_reg_wr w = { .wr = { .wr_id = 1, .opcode = IB_WR_REG_MR }, .access = LACC };

	CHECK(!reg(&a, a.pd, LACC));
	w.mr = a.mr;
	w.key = a.mr->rkey;
	CHECK(!ib_post_send(a.qp, &w.wr, NULL));
	denied(IB_WC_LOC_QP_OP_ERR, -1);
}

static void t_zero(void)
{
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, 0, 0x5555, 0xabcdef00));
	CHECK(wait(&a) == IB_WC_SUCCESS);
}

static void t_short(void)
{
	CHECK(!post_recv(&b, 63));
	CHECK(!post_buf(&a, IB_WR_SEND, 0, 64, 0, 0));
	denied(IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
	CHECK(wait(&b) == IB_WC_LOC_LEN_ERR);
}

static void t_flush(void)	/* order kept, unsignalled ones silent, receives flushed */
{
	struct ib_sge s = {
		.addr = (uintptr_t)a.buf, .length = 4, .lkey = a.pd->local_dma_lkey,
	};
	struct ib_rdma_wr w[4];
	int i;

	CHECK(!post_recv(&b, 64) && !post_recv(&b, 64) && !post_recv(&a, 64));
	for (i = 0; i < 4; i++)
		w[i] = (struct ib_rdma_wr){
			.wr = { .wr_id = 100 + i, .opcode = i == 1 ? IB_WR_RDMA_WRITE : IB_WR_SEND,
				.sg_list = &s, .num_sge = 1, .next = i < 3 ? &w[i + 1].wr : NULL },
			.rkey = 0xabcdef00,
		};
	CHECK(!ib_post_send(a.qp, &w[0].wr, NULL));
	CHECK(wait(&a) == IB_WC_REM_ACCESS_ERR && wc.wr_id == 101);
	CHECK(wait(&a) == IB_WC_WR_FLUSH_ERR && wc.wr_id == 102);
	CHECK(wait(&a) == IB_WC_WR_FLUSH_ERR && wc.wr_id == 103);
	CHECK(wait(&a) == IB_WC_WR_FLUSH_ERR && wc.wr_id == 2);
	CHECK(wait(&b) == IB_WC_SUCCESS && wait(&b) == IB_WC_WR_FLUSH_ERR);
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, 0, 0, 0) && wait(&a) == IB_WC_WR_FLUSH_ERR);
}

static void t_noop(void) { }

static void t_qp_access(void)
{
	CHECK(!reg(&b, b.pd, LACC | RW));
	CHECK(!post_buf(&a, IB_WR_RDMA_WRITE, 0, 8, B_IOVA, B_KEY));
	denied(IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
}

static void t_no_rd(void)
{
	CHECK(!reg(&b, b.pd, LACC | RW));
	CHECK(!post_buf(&a, IB_WR_RDMA_READ, 0, 8, B_IOVA, B_KEY));
	denied(IB_WC_LOC_QP_OP_ERR, -1);
}

static void t_no_dest_rd(void)
{
	CHECK(!reg(&b, b.pd, LACC | RW));
	CHECK(!post_buf(&a, IB_WR_RDMA_READ, 0, 8, B_IOVA, B_KEY));
	denied(IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
}

static const struct {
	const char *name;
	void (*f)(void);
	int b_access, a_rd, b_dest_rd;
} tests[] = {
	{ "connect", t_noop, RW, 4, 4 },
	{ "write", t_write, RW, 4, 4 },
	{ "read", t_read, RW, 4, 4 },
	{ "stale key", t_key, RW, 4, 4 },
	{ "past the end", t_end, RW, 4, 4 },
	{ "before the start", t_start, RW, 4, 4 },
	{ "address wraps", t_wrap, RW, 4, 4 },
	{ "write to a read-only region", t_ro, RW, 4, 4 },
	{ "read from a write-only region", t_wo, RW, 4, 4 },
	{ "local invalidate", t_inv, RW, 4, 4 },
	{ "send with invalidate", t_send_inv, RW, 4, 4 },
	{ "send with invalidate of an unknown key", t_send_inv_bad, RW, 4, 4 },
	{ "region of another domain", t_pd, RW, 4, 4 },
	{ "global key of another domain", t_global, RW, 4, 4 },
	{ "global key", t_global_ok, RW, 4, 4 },
	{ "local key used remotely", t_local_key_remotely, RW, 4, 4 },
	{ "unknown local key", t_lkey, RW, 4, 4 },
	{ "region as local buffer", t_lkey_mr, RW, 4, 4 },
	{ "read into a read-only region", t_lkey_ro, RW, 4, 4 },
	{ "write with immediate", t_imm, RW, 4, 4 },
	{ "registered twice", t_twice, RW, 4, 4 },
	{ "zero length", t_zero, RW, 4, 4 },
	{ "receive too short", t_short, RW, 4, 4 },
	{ "flush", t_flush, RW, 4, 4 },
	{ "queue pair without access", t_qp_access, 0, 4, 4 },
	{ "no read credits here", t_no_rd, RW, 0, 4 },
	{ "no read credits there", t_no_dest_rd, RW, 4, 0 },
};

static int __init softib_selftest_init(void)
{
	int i, k, ret = end_open(&a, "softib0") ?: end_open(&b, "softib1");

	for (i = 0; !ret && i < ARRAY_SIZE(tests); i++) {
		bad_here = 0;
		for (k = 0; k < N; k++)
			a.buf[k] = k * 3;
		memset(b.buf, 0xbb, N);
		ret = qp_new(&a) ?: qp_new(&b) ?: qp_up(&a, &b, RW, tests[i].a_rd, 4) ?:
		      qp_up(&b, &a, tests[i].b_access, 4, tests[i].b_dest_rd);
		if (ret)
			break;
		tests[i].f();
		ib_destroy_qp(a.qp);
		ib_destroy_qp(b.qp);
		if (!IS_ERR_OR_NULL(a.mr))
			ib_dereg_mr(a.mr);
		if (!IS_ERR_OR_NULL(b.mr))
			ib_dereg_mr(b.mr);
		failed += !!bad_here;
		pr_info("softib_selftest: %s %d %s\n", bad_here ? "not ok" : "ok", i + 1,
			tests[i].name);
	}
	pr_info("softib_selftest: %d tests, %d failed, %d\n", i, failed, ret);
	end_close(&a);
	end_close(&b);
	return ret ?: failed ? -EIO : 0;
}

static void __exit softib_selftest_exit(void) { }

module_init(softib_selftest_init);
module_exit(softib_selftest_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Checks of softib");
