"""Reads YAML, and refuses what its usual readers pass over or take for something else."""

import re

import yaml


class _UniqueKeys:
    """Of a key that stands twice the usual readers take the last value alone."""

    def construct_mapping(self, node, deep=False):
        names = set()
        # A key that is a list or a mapping is refused as such; anything else in the place of a mapping too.
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)] if isinstance(node, yaml.MappingNode) else []
        for key in keys:
            if key.value in names:
                raise yaml.constructor.ConstructorError(problem=f"key {key.value} stands twice", problem_mark=key.start_mark)
            names.add(key.value)
        return super().construct_mapping(node, deep)


class Texts(_UniqueKeys, yaml.BaseLoader):
    """Leaves each value the text that it is: the usual reader takes 20:21 for a number to the base of 60, and 010 for 8."""


class Values(_UniqueKeys, yaml.SafeLoader):
    """Reads values as YAML does, with numbers to the base of ten alone."""

    def construct_yaml_int(self, node):
        found = super().construct_yaml_int(node)
        if not re.fullmatch("[-+]?(0|[1-9][0-9]*)", node.value):
            problem = f"{node.value} is {found} in YAML: write {found}, or put what is meant in quotes"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
        return found


Values.add_constructor("tag:yaml.org,2002:int", Values.construct_yaml_int)
