/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * softib: software InfiniBand HCAs, cabled back to back in memory.  For tests
 * only.  One global lock guards all fabric state: softib is meant to be simple,
 * not fast.
 *
 * Names follow the InfiniBand Architecture Specification, volume 1 ("IBA").
 */
#ifndef SOFTIB_H
#define SOFTIB_H

#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_smi.h>
#include <rdma/ib_verbs.h>

/* ---- interfaces of older kernels ---- */

#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 13, 0)
typedef u32 sib_port_nr;
#else
typedef u8 sib_port_nr;
#endif
#ifndef in_range
#define in_range(value, start, len)	((u32)(value) - (start) < (len))
#endif
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0)
#define IB_QP_ATTR_STANDARD_BITS	GENMASK(20, 0)
#endif

#define SIB_MAX_HCAS	16
#define SIB_MAX_PORTS	16
#define SIB_PKEY_BLOCK	32		/* entries in a P_KeyTable attribute */
#define SIB_MAX_PKEYS	128
#define SIB_GUID_BLOCK	8		/* entries in a GUIDInfo attribute */
#define SIB_MAX_GIDS	16
#define SIB_MAX_SGE	32
#define SIB_MAX_WR	16384
#define SIB_MAX_CQE	BIT(20)
#define SIB_UD_MAX	4096
#define SIB_FIRST_QPN	0x48
#define SIB_LOCAL_LKEY	0x51b		/* all kernel memory, local use only */
#define SIB_FIRST_MR	0x100		/* key >> 8, distinct from the key above */
#define SIB_MAX_MR_PAGES 512
#define SIB_RD_ATOM	16

#define SIB_LID_FIRST_MCAST	0xc000
#define SIB_LID_PERMISSIVE	0xffff

struct sib_hca;
struct sib_qp;

/* The PortCounters of IBA 16.1.3.5, in the order of CounterSelect's bits. */
enum sib_counter {
	SIB_CNT_SYMBOL_ERROR, SIB_CNT_LINK_ERROR_RECOVERY, SIB_CNT_LINK_DOWNED,
	SIB_CNT_RCV_ERRORS, SIB_CNT_RCV_REMPHYS_ERRORS, SIB_CNT_RCV_SWITCH_RELAY_ERRORS,
	SIB_CNT_XMIT_DISCARDS, SIB_CNT_XMIT_CONSTRAINT_ERRORS, SIB_CNT_RCV_CONSTRAINT_ERRORS,
	SIB_CNT_LOCAL_LINK_INTEGRITY_ERRORS, SIB_CNT_EXCESSIVE_BUFFER_OVERRUN_ERRORS,
	SIB_CNT_VL15_DROPPED,
	/* data in units of four octets */
	SIB_CNT_XMIT_DATA, SIB_CNT_RCV_DATA, SIB_CNT_XMIT_PACKETS, SIB_CNT_RCV_PACKETS,
	SIB_CNT_XMIT_WAIT,
	SIB_COUNTERS
};

extern const char *const sib_counter_name[SIB_COUNTERS];

/* Management classes that the MAD filter tells apart. */
enum sib_mad_class {
	SIB_MAD_SMP, SIB_MAD_SA, SIB_MAD_PERF, SIB_MAD_CM, SIB_MAD_OTHER, SIB_MAD_CLASSES
};

/* What happens to the MADs of one class that pass a port. */
struct sib_mad_rule {
	u32		drop;		/* number of MADs still to drop; U32_MAX: all */
	u32		delay_ms;
};

#define SIB_EVENTS 8	/* the kinds that a port reports */

/* What happens to the events of one kind.  Counts: how many more; U32_MAX is all. */
struct sib_event_rule {
	u32		drop, dup;
	u32		delay_ms;
};

/* What a test makes of the events of a port. */
struct sib_script {
	struct sib_event_rule rule[SIB_EVENTS];
	int		start;		/* the event that starts the trace, or negative */
	struct list_head trace;		/* waits for it */
};

/* A cable, and the training of the link over it. */
struct sib_link {
	struct sib_port		*end[2];	/* the second is NULL on an odd HCA out */
	struct delayed_work	train;
	bool			training;
	unsigned long		trained_at;	/* jiffies */
};

/* All masks of widths and speeds are those of enum ib_port_width, ib_port_speed. */
struct sib_port {
	u8		num;
	struct sib_hca	*hca;
	struct sib_link	*link;
	struct sib_port	*peer;		/* the other end of the cable; never changes */
	struct sib_qp	*special[2];	/* QP0, QP1 */
	struct net_device *netdev;	/* Ethernet */

	/* PortInfo and the tables beside it: lost when the HCA is reset */
	u8		state;		/* enum ib_port_state */
	u8		phys;		/* enum ib_port_phys_state */
	u16		lid, sm_lid;
	u8		lmc, sm_sl;
	u64		gid_prefix;
	__be64		guids[SIB_MAX_GIDS];	/* of the port, then those that the SM set */
	u32		cap_mask;
	u8		neighbor_mtu;	/* enum ib_mtu */
	u8		operational_vls, vl_high_limit;
	u8		subnet_timeout;
	u8		width_enabled, width_active;
	u16		speed_enabled, speed_active;
	__be64		m_key;
	u16		m_key_lease;	/* seconds */
	u8		m_key_protect;
	u16		m_key_violations, pkey_violations, qkey_violations;
	unsigned long	m_key_expires;	/* jiffies; 0 when no lease is running out */
	bool		swept;		/* the SM has been here since the last INIT */
	unsigned long	sweep_ends;	/* jiffies */
	u8		sweep_state;	/* what the SM has set meanwhile; IB_PORT_NOP: no sweep */
	__be16		pkeys[SIB_MAX_PKEYS];
	u64		counter[SIB_COUNTERS];

	/* knobs: the values of the test survive removal and reset */
	bool		cable;		/* plugged in at this end */
	u8		width_supported;
	u16		speed_supported;
	u8		mtu_cap;	/* enum ib_mtu */
	u8		forced_state;	/* IB_PORT_NOP: none */
	u32		train_ms;
	u32		sweep_ms;
	struct delayed_work sweep;	/* its end */
	u32		drop_above;	/* octets; 0: no black hole */
	u32		fail_joins;
	u16		fail_joins_status;
	struct sib_mad_rule mad[SIB_MAD_CLASSES];
	struct sib_script script;
	struct list_head late;		/* events to come, the next one first */
	struct hrtimer	late_timer;
};

enum sib_op {
	SIB_OP_SEND, SIB_OP_SEND_INV, SIB_OP_READ, SIB_OP_WRITE, SIB_OP_REG_MR, SIB_OP_LOCAL_INV,
	SIB_OP_READ_BYTES, SIB_OP_WRITE_BYTES, SIB_OP_NAK, SIB_OPS
};

/* The registered device: lives from probe to removal. */
struct sib_device {
	struct ib_device	ib;
	struct sib_hca		*hca;
};

/* The card and its slot: lives as long as the module. */
struct sib_hca {
	int			index;
	char			name[16];
	__be64			guid;		/* burned in: the node GUID on the fabric */
	__be64			node_guid;	/* what the driver reads; 0: not set */
	bool			grh_knob;	/* grh_required from the next probe on */
	bool			grh_required;
	bool			ethernet;	/* the link layer */
	u32			planes;		/* of the SMI sub-device; 0: no sub-device */
	struct mutex		slot;		/* guards pdev */
	struct platform_device	*pdev;		/* NULL: the slot is empty, or on PCI */
	struct device		*parent;	/* what the driver binds to; set at probe */
	u32			function;	/* PCI: domain << 16 | bus << 8 | devfn; 0: none yet */
	struct delayed_work	insert;		/* end of a reset */
	struct sib_device	*dev;		/* NULL: no driver bound */
	bool			powered;	/* the ports have power */
	bool			gone;		/* out of its slot; the driver may not know yet */
	struct sib_port		port[SIB_MAX_PORTS];
	u64			ops[SIB_OPS];	/* RC requests executed, by requester */

	/* knobs of fault.c */
	u32			hang_ms, probe_ms;
	int			query_error, probe_error;	/* 0 or a negative errno */
};

struct sib_ucontext { struct ib_ucontext ib; };
struct sib_pd { struct ib_pd ib; };
struct sib_ah { struct ib_ah ib; struct rdma_ah_attr attr; };

/* The key's upper 24 bits are the index in sib_mrs, the low 8 the consumer's. */
struct sib_mr {
	struct ib_mr	ib;
	struct ib_pd	*pd;
	bool		dma;		/* all memory, address is the kernel's */
	/* set by map_mr_sg */
	u64		*pages;
	u32		npages, max_pages;
	/* set by REG_MR: the memory that the wire may access */
	bool		valid;
	u32		key, page_size;
	int		access;
	u64		iova, length;
};

struct sib_cq {
	struct ib_cq		ib;
	struct list_head	notify;		/* on the wire's list of CQs to notify */
	struct ib_wc		*wc;
	u32			size, head, count;
	u8			armed;		/* 0, 1 solicited, 2 any */
};

struct sib_wqe {
	u64		wr_id;
	enum ib_wr_opcode opcode;
	int		flags;
	__be32		imm;
	u32		key;		/* to invalidate, or of a REG_MR */
	int		num_sge;
	u32		len;
	/* RDMA: the other end's memory; REG_MR: iova, length, access */
	u64		raddr, rlen;
	u32		rkey;
	int		access;
	/* UD only */
	struct rdma_ah_attr ah;
	u32		dest_qpn, qkey;
	u16		pkey_index;
};

/* A work queue: `count` requests from `head` on. */
struct sib_ring {
	u32		size, head, count, max_sge;
	struct sib_wqe	*wqe;
	struct ib_sge	*sge;
};

struct sib_srq {
	struct ib_srq	ib;
	struct sib_ring	rq;
	u32		limit;
};

struct sib_mcg {
	struct list_head node;
	union ib_gid	mgid;
	u16		mlid;
};

struct sib_qp {
	struct ib_qp		ib;
	struct sib_hca		*hca;
	struct list_head	tx;		/* on the wire's list of QPs to serve */
	struct list_head	event;		/* on the wire's list of QPs with events */
	struct list_head	mcgs;
	struct list_head	all;		/* on sib_all_qps */
	struct sib_ring		sq, rq;
	struct ib_qp_attr	attr;
	struct ib_qp_cap	cap;
	bool			sig_all;
	enum ib_qp_state	state;
	u64			stall_since;	/* jiffies64 of the first failed try */
	unsigned long		events;		/* bits of enum ib_event_type to report */
	bool			comm_est;	/* reported since the last INIT */
};

/* An unreliable datagram on the wire: LRH, GRH, BTH, DETH, payload. */
struct sib_packet {
	struct list_head	node;		/* on the list of delayed ones */
	unsigned long		due;		/* jiffies */
	struct sib_port		*from;
	enum ib_qp_type		src_type;
	u16			slid, dlid;
	u8			sl;
	bool			has_grh, has_imm, solicited;
	struct ib_grh		grh;
	u16			pkey;
	u32			dest_qpn, src_qpn, qkey;
	__be32			imm;
	u32			len;
	u8			*data;
};

struct sib_cursor {		/* a place in a scatter list */
	const struct ib_sge	*s;
	int			n;
	u32			off;
};

#define to_sib(type, p) container_of(p, struct sib_##type, ib)

static inline struct sib_hca *sib_hca_of(struct ib_device *ib)
{
	return to_sib(device, ib)->hca;
}

static inline struct sib_port *sib_port_of(struct ib_device *ib, u32 num)
{
	return &sib_hca_of(ib)->port[num - 1];
}

static inline struct sib_port *sib_qp_port(struct sib_qp *qp)
{
	return &qp->hca->port[qp->attr.port_num - 1];
}

/* Consume one use of a counted rule; U32_MAX never runs out. */
static inline bool sib_take(u32 *count)
{
	if (!*count)
		return false;
	*count -= *count != U32_MAX;
	return true;
}

/*
 * Under sib_lock.  Not mod_delayed_work(), which takes a queue: the kernel's own is
 * system_wq, deprecated since Linux 6.17, where it became system_percpu_wq.
 */
static inline void sib_reschedule(struct delayed_work *work, u32 ms)
{
	cancel_delayed_work(work);
	schedule_delayed_work(work, msecs_to_jiffies(ms));
}

/* The GUID that the subnet manager reads: from the firmware, not from the driver. */
static inline __be64 sib_fabric_guid(const struct sib_hca *hca)
{
	return hca->node_guid ?: hca->guid;
}

static inline bool sib_link_up(const struct sib_port *p)
{
	return p->peer && p->phys == IB_PORT_PHYS_STATE_LINK_UP &&
	       p->peer->phys == IB_PORT_PHYS_STATE_LINK_UP;
}

/* A list parameter has a value for each HCA; the last stands for those that follow. */
static inline unsigned int sib_list_index(const struct sib_hca *hca, unsigned int count)
{
	return min_t(unsigned int, hca->index, count ? count - 1 : 0);
}

extern spinlock_t sib_lock;
extern struct xarray sib_qps, sib_mrs;
extern struct list_head sib_all_qps;

/* main.c */
extern unsigned int sib_num_ports, sib_num_pkeys, sib_num_gids;
int sib_hca_insert(struct sib_hca *hca);
int sib_hca_pull(struct sib_hca *hca);
int sib_hca_reset(struct sib_hca *hca, u32 ms);
int sib_hca_up(struct sib_hca *hca, struct device *parent);
void sib_hca_down(void *hca);
void sib_hca_lost(struct sib_hca *hca);
struct sib_hca *sib_hca_slot(int i);

/* pci.c */
extern bool sib_on_pci;
bool sib_pci_present(const struct sib_hca *hca);
int sib_pci_insert(struct sib_hca *hca);
int sib_pci_pull(struct sib_hca *hca);
void sib_pci_scan(void);
int sib_pci_register(void);
void sib_pci_unregister(void);

/* enhanced.c */
extern const struct ib_device_ops sib_enhanced_ops;
bool sib_is_enhanced(const struct sib_hca *hca);

void sib_device_setup(struct sib_device *dev, struct sib_hca *hca);

/* ether.c */
extern const struct ib_device_ops sib_ether_ops;
int sib_ether_init(struct sib_hca *hca);
int sib_ether_add(struct sib_device *dev);
void sib_ether_del(struct sib_hca *hca);
void sib_ether_update(struct sib_port *p);

/* smi.c */
extern const struct ib_device_ops sib_smi_parent_ops;
void sib_smi_init(struct sib_hca *hca);
int sib_smi_add(struct sib_hca *hca);

/* device.c, cq.c, qp.c, mr.c, mad.c, port.c: the verbs */
extern const struct attribute_group sib_attr_group;
extern const struct ib_device_ops sib_device_ops, sib_rxe_ops;
extern const struct ib_device_ops sib_port_ops;
extern const struct ib_device_ops sib_cq_ops;
extern const struct ib_device_ops sib_qp_ops;
extern const struct ib_device_ops sib_mr_ops;
int sib_process_mad(struct ib_device *ibdev, int flags, sib_port_nr port_num,
		    const struct ib_wc *wc, const struct ib_grh *grh,
		    const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *out_pkey);

/* events.c */
#define SIB_EV(type) BIT(IB_EVENT_##type)
void sib_events_init(struct sib_port *p);
void sib_events_exit(struct sib_port *p);
void sib_events_knobs(struct sib_port *p, struct dentry *dir);
void sib_port_events(struct sib_port *p, unsigned long events);

/* port.c */
int sib_port_init(struct sib_port *p, struct sib_hca *hca, int num);
void sib_port_exit(struct sib_port *p);
void sib_port_reset(struct sib_port *p);
void sib_port_power(struct sib_port *p, bool on);
unsigned long sib_port_set_state(struct sib_port *p, u8 state);
void sib_port_force(struct sib_port *p, u8 state);
void sib_port_set_guid(struct sib_port *p, __be64 guid);
void sib_port_sweep(struct sib_port *p);
u8 sib_port_phys(const struct sib_port *p);

/* link.c */
void sib_port_set_phys(struct sib_port *p, u8 phys);
void sib_port_set_caps(struct sib_port *p, u8 width, u16 speed, u8 mtu);
void sib_link_caps(struct sib_port *p);
void sib_link_update(struct sib_port *p);
void sib_link_reset(struct sib_port *p);
void sib_link_warm(struct sib_link *link);
void sib_link_init(struct sib_link *link, struct sib_port *a, struct sib_port *b);
void sib_link_exit(struct sib_link *link);

/* fault.c */
void sib_fault_init(struct sib_hca *hca);
int sib_fault_probe(struct sib_hca *hca, struct device *dev);
int sib_command(struct sib_hca *hca);
void sib_fault_knobs(struct sib_hca *hca, struct dentry *dir);

/* sma.c, pma.c: the agents; the results are process_mad's */
int sib_sma(struct sib_port *p, int flags, const struct ib_smp *in, struct ib_smp *out);
int sib_pma(struct sib_port *p, const struct ib_mad *in, struct ib_mad *out);

/* mad.c: the filter; under sib_lock */
enum sib_verdict { SIB_PASS, SIB_DROP, SIB_DELAY, SIB_REFUSE };
extern const char *const sib_mad_class_name[SIB_MAD_CLASSES];
enum sib_verdict sib_mad_filter(struct sib_packet *pkt, struct sib_port *to, u32 *delay_ms);
void sib_mad_refuse(struct sib_packet *pkt);
void sib_mad_path(struct sib_packet *pkt);

/* mr.c: under sib_lock */
bool sib_sg_ok(struct ib_pd *pd, const struct ib_sge *s, int n, int access);
bool sib_rkey_ok(struct ib_pd *pd, const struct ib_sge *remote, int access);
bool sib_copy(struct sib_cursor dst, struct sib_cursor src);
bool sib_mr_reg(struct sib_qp *qp, const struct sib_wqe *w);
bool sib_mr_inv(struct sib_qp *qp, u32 key);

/* cq.c: under sib_lock */
void sib_cq_push(struct sib_cq *cq, const struct ib_wc *wc, bool solicited);
void sib_cq_clean(struct sib_cq *cq, struct ib_qp *qp);

/* queue.c: work queues; under sib_lock but for init and free */
int sib_ring_init(struct sib_ring *r, u32 n, u32 sge);
void sib_ring_free(struct sib_ring *r);
struct sib_wqe *sib_ring_tail(struct sib_ring *r, const struct ib_sge *sg, int n);
int sib_ring_post_recv(struct sib_ring *r, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad);

static inline struct sib_wqe *sib_ring_head(struct sib_ring *r)
{
	return r->count ? &r->wqe[r->head] : NULL;
}

static inline struct ib_sge *sib_ring_sge(struct sib_ring *r)
{
	return &r->sge[r->head * r->max_sge];
}

static inline void sib_ring_pop(struct sib_ring *r)
{
	r->head = (r->head + 1) % r->size;
	r->count--;
}

static inline struct sib_cursor sib_ring_cursor(struct sib_ring *r)
{
	return (struct sib_cursor){ .s = sib_ring_sge(r), .n = sib_ring_head(r)->num_sge };
}

static inline struct sib_ring *sib_qp_rq(struct sib_qp *qp)
{
	return qp->ib.srq ? &to_sib(srq, qp->ib.srq)->rq : &qp->rq;
}

/* wire.c: under sib_lock but for init, exit and forget */
int sib_wire_init(void);
void sib_wire_exit(void);
void sib_wire_kick(struct sib_qp *qp);
void sib_wire_notify(struct sib_cq *cq);
void sib_wire_delay(const struct sib_packet *pkt, u32 ms);
void sib_wire_forget_qp(struct sib_qp *qp);
void sib_wire_forget_cq(struct sib_cq *cq);
void sib_qp_complete(struct sib_qp *qp, enum ib_wc_status status);
void sib_qp_error(struct sib_qp *qp);
void sib_qp_event(struct sib_qp *qp, enum ib_event_type ev);
struct sib_qp *sib_qp_find(struct sib_port *p, u32 qpn);
bool sib_lid_match(const struct sib_port *p, u16 lid);
bool sib_pkey_match(u16 a, u16 b);

/* ud.c, rc.c: the transports; under sib_lock */
void sib_ud_tx(struct sib_qp *qp);
void sib_ud_arrive(const struct sib_packet *pkt, struct sib_port *to);
bool sib_rc_tx(struct sib_qp *qp);

/* knobs.c */
void sib_knobs_init(void);
void sib_knobs_add(struct sib_hca *hca);
void sib_knobs_exit(void);
int sib_parse_width(const char *name, u8 *mask);
int sib_parse_speed(const char *name, u16 *mask);
int sib_parse_mtu(const char *name, u8 *mtu);
int sib_parse_state(const char *name, u8 *state);

#endif
