// SPDX-License-Identifier: GPL-2.0-only
/*
 * HCAs on the PCI bus, instead of platform devices: the driver binds to functions
 * that QEMU has for tests (-device pci-testdev), so that addresses, modalias, bind,
 * hot unplug and error recovery are the kernel's own.  Slot n is the nth function in
 * the order of the bus; a function that comes back to its address is the same HCA.
 */
#include <linux/pci.h>
#include "softib.h"

#define QEMU_PCI_TESTDEV		0x0005
#define CLASS_NETWORK_INFINIBAND	0x020700	/* class, subclass, interface */

bool sib_on_pci;
module_param_named(pci, sib_on_pci, bool, 0444);
MODULE_PARM_DESC(pci, "the HCAs are PCI functions (QEMU's pci-testdev)");

static DEFINE_MUTEX(functions);		/* guards sib_hca.function */

static const struct pci_device_id pci_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT, QEMU_PCI_TESTDEV) },
	{ }
};
MODULE_DEVICE_TABLE(pci, pci_ids);

static u32 address_of(const struct pci_dev *pdev)
{
	return pci_domain_nr(pdev->bus) << 16 | pci_dev_id((struct pci_dev *)pdev);
}

/* The function of a slot, with a reference; NULL: it is not on the bus. */
static struct pci_dev *function_of(const struct sib_hca *hca)
{
	u32 at = READ_ONCE(hca->function);

	return at ? pci_get_domain_bus_and_slot(at >> 16, PCI_BUS_NUM(at), at & 0xff) : NULL;
}

/* The slot of a function: the one with its address, else the first without any. */
static struct sib_hca *slot_of(struct pci_dev *pdev)
{
	struct sib_hca *hca;
	int i;

	/* QEMU's class is no InfiniBand HCA's; sysfs and uevents show this one */
	pdev->class = CLASS_NETWORK_INFINIBAND;
	mutex_lock(&functions);
	for (i = 0; (hca = sib_hca_slot(i)) && hca->function != address_of(pdev); i++)
		;
	if (!hca) {
		for (i = 0; (hca = sib_hca_slot(i)) && hca->function; i++)
			;
		if (hca)
			WRITE_ONCE(hca->function, address_of(pdev));
	}
	mutex_unlock(&functions);
	return hca;
}

static int sib_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct sib_hca *hca = slot_of(pdev);
	int ret;

	if (!hca) {
		pci_err(pdev, "more functions than HCAs\n");
		return -ENODEV;
	}
	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	WRITE_ONCE(hca->gone, false);
	pci_set_drvdata(pdev, hca);
	pci_save_state(pdev);
	return sib_hca_up(hca, &pdev->dev);
}

/* ---- errors: the RDMA device goes, and comes back after the reset, as mlx5's does ---- */

static pci_ers_result_t error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct sib_hca *hca = pci_get_drvdata(pdev);

	pci_err(pdev, "%s: PCI error, channel state %u\n", hca->name, state);
	if (READ_ONCE(hca->dev)) {
		sib_hca_lost(hca);
		devm_release_action(&pdev->dev, sib_hca_down, hca);
	}
	return state == pci_channel_io_perm_failure ? PCI_ERS_RESULT_DISCONNECT :
						      PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t slot_reset(struct pci_dev *pdev)
{
	pci_restore_state(pdev);
	pci_save_state(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static void resume(struct pci_dev *pdev)
{
	struct sib_hca *hca = pci_get_drvdata(pdev);
	int ret;

	WRITE_ONCE(hca->gone, false);
	ret = sib_hca_up(hca, &pdev->dev);
	if (ret)
		pci_err(pdev, "no return after a PCI error: %d\n", ret);
}

static const struct pci_error_handlers err_handler = {
	.error_detected = error_detected,
	.slot_reset = slot_reset,
	.resume = resume,
};

static struct pci_driver sib_pci_driver = {
	.name = "softib",
	.id_table = pci_ids,
	.probe = sib_pci_probe,
	.err_handler = &err_handler,
};

/* ---- the knobs present and reset ---- */

bool sib_pci_present(const struct sib_hca *hca)
{
	struct pci_dev *pdev = function_of(hca);

	pci_dev_put(pdev);
	return pdev;
}

int sib_pci_insert(struct sib_hca *hca)
{
	u32 at = READ_ONCE(hca->function);
	struct pci_bus *bus = at ? pci_find_bus(at >> 16, PCI_BUS_NUM(at)) : NULL;

	if (!bus)
		return -ENODEV;
	pci_lock_rescan_remove();
	pci_rescan_bus(bus);
	pci_unlock_rescan_remove();
	return 0;
}

/* The power goes first, and what the driver does after that finds nothing. */
int sib_pci_pull(struct sib_hca *hca)
{
	struct pci_dev *pdev = function_of(hca);

	if (!pdev)
		return -ENODEV;
	sib_hca_lost(hca);
	pci_stop_and_remove_bus_device_locked(pdev);
	pci_dev_put(pdev);
	return 0;
}

/* Slots in the order of the bus, whichever is probed first. */
void sib_pci_scan(void)
{
	struct pci_dev *pdev = NULL;

	while ((pdev = pci_get_device(PCI_VENDOR_ID_REDHAT, QEMU_PCI_TESTDEV, pdev)))
		slot_of(pdev);
}

int sib_pci_register(void)
{
	return pci_register_driver(&sib_pci_driver);
}

/* In the order of the slots, as remove_devices(): see there. */
void sib_pci_unregister(void)
{
	struct pci_dev *pdev;
	struct sib_hca *hca;
	int i;

	for (i = 0; (hca = sib_hca_slot(i)); i++) {
		pdev = function_of(hca);
		if (pdev && pdev->dev.driver == &sib_pci_driver.driver)
			device_release_driver(&pdev->dev);
		pci_dev_put(pdev);
	}
	pci_unregister_driver(&sib_pci_driver);
}
