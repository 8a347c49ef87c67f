"""Which batches of a fetch answer belong to aborted transactions, decided as Kafka's consumers decide it.

The answer lists (producer id, first offset) of the aborted transactions that touch it. A producer's batches
from the first offset on are dropped until its abort marker is passed; then its next transaction counts anew.
"""

import heapq
from collections.abc import Sequence

from mainstem.records.batch import CONTROL_MASK, NO_PRODUCER_ID, TRANSACTIONAL_MASK
from mainstem.records.columnar.errors import CorruptRecordsError
from mainstem.records.columnar.layout import Table
from mainstem.records.control import ControlType, control_type_of
from mainstem.records.record import RecordError, iter_records


def aborted_batches(data: memoryview, batches: Table, aborted: Sequence[tuple[int, int]]) -> list[int]:
    """The rows of the table whose batches a reader of committed records must not see."""
    coming = [(first_offset, producer_id) for producer_id, first_offset in aborted]
    heapq.heapify(coming)
    ongoing: set[int] = set()
    dropped: list[int] = []
    columns = (batches[name].tolist() for name in ("producer_id", "attributes", "last_offset", "start"))
    for row, (producer_id, attributes, last_offset, start) in enumerate(zip(*columns, strict=True)):
        if producer_id <= NO_PRODUCER_ID:
            continue
        while coming and coming[0][0] <= last_offset:
            ongoing.add(heapq.heappop(coming)[1])
        if attributes & CONTROL_MASK:
            if _is_abort_marker(data[start:], int(batches["base_offset"][row])):
                ongoing.discard(producer_id)
        elif attributes & TRANSACTIONAL_MASK and producer_id in ongoing:
            dropped.append(row)
    return dropped


def _is_abort_marker(batch: memoryview, offset: int) -> bool:
    try:
        record = next(iter_records(batch), None)
    except RecordError as error:
        raise CorruptRecordsError(offset, str(error)) from None
    return record is not None and control_type_of(record.key) is ControlType.ABORT
