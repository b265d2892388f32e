#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace holdfast::test {

/// Making an empty database takes longer than all the rest of a server's start. So each kind is
/// made once and kept as a template, under HOLDFAST_TEST_CACHE or, without it, the build directory.
/// Copies `name` to `target` (which must not exist); calls make(directory) first when there is no
/// such template yet. `make` runs in a private directory of `owner`, and creates `directory` in it.
/// A change of how a template is made must change its name. Safe when several programs do it at the
/// same time.
void copy_data_template(const std::string& name, const std::string& owner,
                        const std::filesystem::path& target,
                        const std::function<void(const std::filesystem::path& directory)>& make);

}  // namespace holdfast::test
