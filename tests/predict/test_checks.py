"""scikit-learn's own checks of an estimator, on arrays."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from rdc_jax.predict import RDCClassifier

TRANSDUCTION = {
    "check_methods_subset_invariance": "transductive: an answer depends on the other "
    "queries that are given with it"
}


@parametrize_with_checks([RDCClassifier(transductive=False)])
def test_every_check_passes(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [RDCClassifier()], expected_failed_checks=lambda _: TRANSDUCTION
)
def test_every_check_passes_but_the_one_that_forbids_transduction(estimator, check):
    check(estimator)
