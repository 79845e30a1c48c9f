"""What every store guarantees, as tests that run against any store.

A store of your own proves itself by subclassing in a test module::

    class TestMyJobs(JobStoreContract):
        @pytest.fixture
        def clock(self): return ManualClock(START)

        @pytest.fixture
        def store(self, clock): return MyJobStore(clock)

``pytest.register_assert_rewrite("django_helisched.testing.contract")`` in a
conftest, before this package is imported, makes failures show their values.

``CronStoreContract`` needs ``clock``, ``crons`` and ``store``, the job store
that the crons enqueue into. Only verbs of the contract look at what happened.
"""

from django_helisched.testing.contract.batching import BatchContract
from django_helisched.testing.contract.canceling import CancelContract
from django_helisched.testing.contract.claiming import ClaimContract
from django_helisched.testing.contract.crons import CronStoreContract
from django_helisched.testing.contract.enqueueing import EnqueueContract
from django_helisched.testing.contract.expiring import ExpireContract
from django_helisched.testing.contract.factories import START
from django_helisched.testing.contract.families import FamilyContract
from django_helisched.testing.contract.holding import HoldContract
from django_helisched.testing.contract.keys import KeyContract
from django_helisched.testing.contract.limiting import LimitContract
from django_helisched.testing.contract.looking import LookContract
from django_helisched.testing.contract.pruning import PruneContract
from django_helisched.testing.contract.refusing import RefuseContract
from django_helisched.testing.contract.requeueing import RequeueContract
from django_helisched.testing.contract.settling import SettleContract
from django_helisched.testing.contract.sharing import ShareContract
from django_helisched.testing.contract.sweeping import SweepContract
from django_helisched.testing.contract.transactions import TransactionContract

__all__ = ["START", "CronStoreContract", "JobStoreContract"]


class JobStoreContract(
    EnqueueContract,
    KeyContract,
    FamilyContract,
    TransactionContract,
    ClaimContract,
    ShareContract,
    HoldContract,
    SettleContract,
    RefuseContract,
    CancelContract,
    RequeueContract,
    SweepContract,
    ExpireContract,
    LookContract,
    PruneContract,
    LimitContract,
    BatchContract,
):
    """Every verb of JobStore."""
