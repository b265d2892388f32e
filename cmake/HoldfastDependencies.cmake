# Third-party libraries, all private: none of their types is in a public header.
#
# holdfast_dependency(<target> <pkg-config name> <how a CMake consumer finds it>)
# A static archive carries its private dependencies to whoever links it. This remembers, per imported target, the pkg-config name and the
# line of code that finds it again; HoldfastInstall puts them into holdfast.pc and holdfastConfig.cmake for the libraries that use it.
function(holdfast_dependency target pkgconfig find)
  set_property(GLOBAL PROPERTY HOLDFAST_PKGCONFIG_OF_${target} "${pkgconfig}")
  set_property(GLOBAL PROPERTY HOLDFAST_FIND_OF_${target} "${find}")
endfunction()

# The same for a library that has only a pkg-config file: PkgConfig::<name>.
macro(holdfast_pkgconfig_dependency name module)
  pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
  holdfast_dependency(PkgConfig::${name} ${module} "holdfast_find_pkgconfig(${name} ${module})")
endmacro()

find_package(PkgConfig REQUIRED)

find_package(Threads REQUIRED)
holdfast_dependency(Threads::Threads "" "find_dependency(Threads)")

find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)
holdfast_dependency(OpenSSL::Crypto libcrypto "find_dependency(OpenSSL 3.0 COMPONENTS Crypto)")

find_package(simdjson REQUIRED)
holdfast_dependency(simdjson::simdjson simdjson "find_dependency(Threads)\n  find_dependency(simdjson)")

holdfast_pkgconfig_dependency(sodium libsodium)
holdfast_pkgconfig_dependency(lz4 liblz4)
holdfast_pkgconfig_dependency(xxhash libxxhash)
