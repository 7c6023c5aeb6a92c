"""Several costs, each for variables of its own, in any trainer of one cost.

A trainer asks its optimizer for the gradients of one scalar. `separate_costs` makes a scalar whose
gradient with respect to each variable is that of the variable's own cost. So whatever a trainer
does with gradients, over towers, workers or steps, it does with these.
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf

from .tower import get_current_tower_context

Part = Tuple[tf.Tensor, Union[str, Sequence[Any]]]


def separate_costs(*parts: Part) -> tf.Tensor:
    """Combines costs so that each variable follows the gradient of its own cost.

    To be returned from `build_graph`. All costs are differentiated at the same weights: no update
    comes between two of them. With `precision="fp16"` the scale of the cost comes too late for
    gradients that float16 cannot hold. ::

        def build_graph(self, real):
            ...
            return separate_costs((g_loss, "gen"), (d_loss, "discrim"))

    Args:
      parts: pairs of a scalar cost and its variables: a list, or the name of their scope in the
        tower.

    Returns:
      float32 scalar, the sum of the costs. Where nothing is trained, it is no more than that.
    """
    total = tf.add_n([cost for cost, _ in parts])
    tower = get_current_tower_context()
    if tower is not None and not tower.is_training:
        return total
    seen: Dict[str, int] = {}
    variables_of, gradients = [], []
    for number, (cost, given) in enumerate(parts):
        variables = _variables_in(given) if isinstance(given, str) else list(given)
        for variable in variables:
            if seen.setdefault(variable.name, number) != number:
                raise ValueError(
                    f"{variable.name} belongs to two costs: it can follow one of them."
                )
        variables_of += variables
        gradients += _gradients(cost, variables)
    # All are computed before any is used: on TensorFlow 1.15 an update changes a variable in place,
    # which the gradient of another cost may be about to read.
    pull = tf.add_n(_terms(tf.tuple(gradients), variables_of))
    # the value of the first one, exactly, with the gradient of the second one
    return tf.stop_gradient(total) + (pull - tf.stop_gradient(pull))


def _variables_in(scope: str) -> List[Any]:
    tower = get_current_tower_context()
    prefix = f"{tower.vs_name}/" if tower is not None and tower.vs_name else ""
    found = [each for each in tf.trainable_variables() if each.name.startswith(f"{prefix}{scope}/")]
    if not found:
        raise ValueError(
            f"There are no trainable variables in the scope {prefix}{scope}: build the network "
            f'under tf.variable_scope("{scope}"), or give a list of variables.'
        )
    return found


def _gradients(cost: tf.Tensor, variables: Sequence[Any]) -> List[Any]:
    """Returns the gradient of the cost for each variable, None where there is none."""
    found = tf.gradients(cost, variables, colocate_gradients_with_ops=True, gate_gradients=True)
    if all(each is None for each in found):
        names = ", ".join(each.name for each in variables)
        raise ValueError(f"The cost {cost.name} does not depend on any of {names}.")
    return list(found)


def _terms(gradients: Sequence[Any], variables: Sequence[Any]) -> List[tf.Tensor]:
    """Returns scalars whose gradients for the variables are these."""
    terms = []
    for gradient, variable in zip(gradients, variables):
        if isinstance(gradient, tf.IndexedSlices):  # stays sparse
            rows = tf.gather(variable, gradient.indices)
            terms.append(tf.reduce_sum(tf.stop_gradient(gradient.values) * rows))
        elif gradient is not None:
            terms.append(tf.reduce_sum(tf.stop_gradient(gradient) * variable))
    return terms


class OptimizerPerScope(tf.train.Optimizer):
    """Updates the variables of each scope by an optimizer of its own.

    Args:
      optimizers: name of a scope to the optimizer of its variables; "" for all others. The longest
        scope that a variable is in counts.
    """

    def __init__(self, optimizers: Dict[str, tf.train.Optimizer]) -> None:
        """Takes an optimizer for each scope."""
        super().__init__(use_locking=False, name=type(self).__name__)
        if not optimizers:
            raise ValueError("OptimizerPerScope needs an optimizer.")
        self._optimizers = dict(optimizers)

    def apply_gradients(
        self,
        grads_and_vars: Sequence[Tuple[Any, Any]],
        global_step: Optional[tf.Variable] = None,
        name: Optional[str] = None,
    ) -> tf.Operation:
        """Returns an op that does the updates of all, and then advances `global_step`, if given."""
        pairs: Dict[str, List[Tuple[Any, Any]]] = {}
        for gradient, variable in grads_and_vars:
            pairs.setdefault(self._scope_of(variable), []).append((gradient, variable))
        updates = [self._optimizers[scope].apply_gradients(each) for scope, each in pairs.items()]
        if global_step is not None:
            with tf.control_dependencies(updates):
                updates.append(tf.assign_add(global_step, 1))
        return tf.group(*updates, name=name)

    def _scope_of(self, variable: Any) -> str:
        name = variable.name
        fits = [each for each in self._optimizers if not each or name.startswith(f"{each}/")]
        if not fits:
            raise ValueError(
                f"{name} is in none of the scopes {', '.join(self._optimizers)}: give it "
                'an optimizer, or one to "" for all others.'
            )
        return max(fits, key=len)

    def get_slot(self, var: Any, name: str) -> Any:
        """Returns a slot of the optimizer of this variable."""
        return self._optimizers[self._scope_of(var)].get_slot(var, name)

    def get_slot_names(self) -> List[str]:
        """Returns the names of the slots of all optimizers."""
        return sorted(
            {name for each in self._optimizers.values() for name in each.get_slot_names()}
        )

    def variables(self) -> List[tf.Variable]:
        """Returns the variables of all optimizers."""
        return [variable for each in self._optimizers.values() for variable in each.variables()]
