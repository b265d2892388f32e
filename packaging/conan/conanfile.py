"""A recipe of the sources that it lies in: conan create packaging/conan --build=missing"""

import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load
from conan.tools.gnu import PkgConfigDeps

# The option, and the package that it needs. Redis needs none.
BACKENDS = {
    "sqlite": "sqlite3/[>=3.35]",
    "postgres": "libpq/[>=14]",
    "mysql": "mariadb-connector-c/[>=3.1]",
    "odbc": "odbc/[>=2.3]",
    "rabbitmq": "rabbitmq-c/[>=0.11]",
    "kafka": "librdkafka/[>=2.0]",
}


class Holdfast(ConanFile):
    name = "holdfast"
    license = "Apache-2.0"
    description = "Keeps services answering and consistent when what they depend on fails"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], **{backend: [True, False] for backend in BACKENDS}}
    default_options = {"shared": False, **{backend: backend == "sqlite" for backend in BACKENDS}}

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "..", "..", "include", "holdfast", "version.hpp"))
        self.version = re.search(r'HOLDFAST_VERSION_STRING "([^"]+)"', header)[1]

    def validate(self):
        check_min_cppstd(self, 20)

    def requirements(self):
        for package in ("openssl/[>=3.0]", "simdjson/[>=2.0]", "libsodium/[>=1.0.18]", "lz4/[>=1.9]", "xxhash/[>=0.8]", "tomlplusplus/[>=3.0]"):
            self.requires(package)
        for backend, package in BACKENDS.items():
            if self.options.get_safe(backend):
                self.requires(package)

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "packaging/*", "src/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for name in ("CLI", "TESTS", "EXAMPLES"):
            toolchain.cache_variables[f"HOLDFAST_BUILD_{name}"] = "OFF"
        toolchain.cache_variables["HOLDFAST_WITH_NATS"] = "OFF"
        for backend in BACKENDS:
            toolchain.cache_variables[f"HOLDFAST_WITH_{backend.upper()}"] = "ON" if self.options.get_safe(backend) else "OFF"
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # holdfastConfig.cmake, which the build installs, has a target for each capability.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append(os.path.join("lib", "cmake", "holdfast"))
