"""The race campaign: gangs, ordinary pods and dying controllers on one real control plane.

etcd, API server, controller manager and scheduler are the real ones, and so are the controller's
processes; nodes have no kubelet, `standin` says what one would say of pods. Every write of a
controller passes a `proxy`, where the campaign kills it or lets the write fail. `crowd` is
everybody else, `witness` watches and says what must never be seen. It keeps the `history`, of which
`wholeness` judges whether gangs were whole when they started, `guarding` whether what was held twice
stayed guarded; `objects` reads raw ones. `campaign` is one run, `main` the command line.
"""
