# Third-party libraries, all private: none of their types is in a public header.

find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(lz4 REQUIRED IMPORTED_TARGET liblz4)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
find_package(simdjson REQUIRED)
